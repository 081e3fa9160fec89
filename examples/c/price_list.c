// A price list that many read and few change, and mails of which two leave at a time.
// cc price_list.c $(pkg-config --cflags --libs fencelock) -pthread
#include <fencelock.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// The list, and what guards it from a holder that comes too late: the highest token that has written,
// and the highest that has done either. A real one keeps them where the prices are.
static struct {
    int price;
    uint64_t written, seen;
    pthread_mutex_t step;
} list = {0, 0, 0, PTHREAD_MUTEX_INITIALIZER};

static bool list_write(uint64_t token, int price) {
    pthread_mutex_lock(&list.step);
    bool fits = token >= list.seen;
    if (fits) list.price = price, list.written = list.seen = token;
    pthread_mutex_unlock(&list.step);
    return fits;
}

static bool list_read(uint64_t token, int *price) {
    pthread_mutex_lock(&list.step);
    bool fits = token >= list.written;
    if (fits && token > list.seen) list.seen = token;
    *price = list.price;
    pthread_mutex_unlock(&list.step);
    return fits;
}

static void check(fencelock_status status, fencelock_error *error) {
    if (status == FENCELOCK_OK) return;
    fprintf(stderr, "%s: %s\n", fencelock_status_name(status), fencelock_error_message(error));
    exit(1);
}

static fencelock_rwlock *prices;
static fencelock_semaphore *mailers;
static pthread_barrier_t together;
static atomic_int at_work, most;

static void *reader(void *unused) {
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    uint64_t token = 0;
    int price = 0;
    check(fencelock_rwlock_acquire_read(prices, NULL, &hold, &error), error);
    pthread_barrier_wait(&together); // all three are in
    fencelock_hold_token(hold, &token);
    if (!list_read(token, &price)) fprintf(stderr, "too late to read\n");
    printf("read %d under token %" PRIu64 "\n", price, token);
    check(fencelock_hold_release(hold, &error), error);
    return unused;
}

static void *mail(void *unused) {
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    check(fencelock_semaphore_acquire(mailers, 1, NULL, &hold, &error), error);
    int now = atomic_fetch_add(&at_work, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) continue;
    nanosleep(&(struct timespec){0, 10000000}, NULL); // the mail
    atomic_fetch_sub(&at_work, 1);
    check(fencelock_hold_release(hold, &error), error);
    return unused;
}

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "memory:";
    fencelock_client *client = NULL;
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    uint64_t token = 0;
    pthread_t threads[6];
    check(fencelock_connect(url, FENCELOCK_NTS, NULL, &client, &error), error);
    check(fencelock_client_rwlock(client, "prices", FENCELOCK_NTS, &prices, &error), error);
    check(fencelock_client_semaphore(client, "mailers", FENCELOCK_NTS, 2, &mailers, &error), error);

    check(fencelock_rwlock_acquire_write(prices, NULL, &hold, &error), error);
    fencelock_hold_token(hold, &token);
    if (!list_write(token, 42)) fprintf(stderr, "too late to write\n");
    check(fencelock_hold_release(hold, &error), error);

    pthread_barrier_init(&together, NULL, 3);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    // A writer that slept, and lost its lock to them: its token says so.
    printf("a write that comes too late: %s\n", list_write(token, 7) ? "taken" : "refused");

    for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, mail, NULL);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    printf("at most %d of 2 mailed at a time\n", atomic_load(&most));

    bool well = !list_write(token, 7) && atomic_load(&most) <= 2;
    fencelock_semaphore_free(mailers);
    fencelock_rwlock_free(prices);
    fencelock_client_close(client, 0, NULL);
    fencelock_client_free(client);
    return well ? 0 : 1;
}
