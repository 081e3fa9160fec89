// The driver of C in the comparison: does what README.md says.
#include <fencelock.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MANY 512

// One caller: its lock, what it did, and until when.
struct caller {
    pthread_t thread;
    fencelock_lock *lock;
    uint64_t end, pairs, longest;
    uint64_t *spans; // how long each pair took
    size_t room;
};

// A lock that is acquired by a thread of its own, and released when it is told to.
struct held {
    char tag[64];
    fencelock_lock *lock;
    int64_t lease;
    sem_t told;
    struct held *next;
};

static fencelock_client *client;
static pthread_barrier_t begin;
static struct held *holds;

static uint64_t now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void must(fencelock_status status, fencelock_error *error) {
    if (!status) return;
    fprintf(stderr, "driver: %s: %s\n", fencelock_status_name(status), fencelock_error_message(error));
    _exit(1);
}

static fencelock_lock *lock_of(const char *key, int number) {
    char name[200];
    fencelock_lock *lock = NULL;
    fencelock_error *error = NULL;
    if (number < 0) snprintf(name, sizeof name, "%s", key);
    else snprintf(name, sizeof name, "%s-%d", key, number);
    must(fencelock_client_lock(client, name, FENCELOCK_NTS, &lock, &error), error);
    return lock;
}

static fencelock_hold *acquire(fencelock_lock *lock, int64_t lease) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    if (lease) options.lease_ns = lease;
    must(fencelock_lock_acquire(lock, &options, &hold, &error), error);
    return hold;
}

static void release(fencelock_hold *hold) {
    fencelock_error *error = NULL;
    must(fencelock_hold_release(hold, &error), error);
}

static void *work(void *data) {
    struct caller *caller = data;
    pthread_barrier_wait(&begin);
    for (uint64_t asked = now(), next; asked < caller->end; asked = next) {
        fencelock_hold *hold = acquire(caller->lock, 0);
        uint64_t waited = now() - asked;
        if (waited > caller->longest) caller->longest = waited;
        release(hold);
        next = now();
        if (caller->pairs == caller->room) {
            caller->room = caller->room ? caller->room * 2 : 4096;
            caller->spans = realloc(caller->spans, caller->room * sizeof *caller->spans);
        }
        caller->spans[caller->pairs++] = next - asked;
    }
    return NULL;
}

static int by_size(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static uint64_t median(struct caller *caller) {
    if (!caller->pairs) return 0;
    qsort(caller->spans, caller->pairs, sizeof *caller->spans, by_size);
    return caller->spans[caller->pairs / 2];
}

enum answer { RATE, MEDIAN, FAIRNESS };

// So many callers at once, each with a lock of its own or all with one.
static void crowd(int count, const char *key, int apart, int64_t span, enum answer answer) {
    static struct caller callers[MANY];
    uint64_t total = 0, least = UINT64_MAX, most = 0, longest = 0;
    if (count > MANY) count = MANY;
    pthread_barrier_init(&begin, NULL, (unsigned)count + 1);
    for (int at = 0; at < count; at++) {
        callers[at] = (struct caller){.lock = lock_of(key, apart ? at : -1)};
        pthread_create(&callers[at].thread, NULL, work, &callers[at]);
    }
    uint64_t start = now();
    for (int at = 0; at < count; at++) callers[at].end = start + (uint64_t)span;
    pthread_barrier_wait(&begin);
    for (int at = 0; at < count; at++) pthread_join(callers[at].thread, NULL);
    uint64_t took = now() - start;
    uint64_t middle = answer == MEDIAN ? median(callers) : 0;
    for (int at = 0; at < count; at++) {
        struct caller *caller = &callers[at];
        free(caller->spans);
        total += caller->pairs;
        if (caller->pairs < least) least = caller->pairs;
        if (caller->pairs > most) most = caller->pairs;
        if (caller->longest > longest) longest = caller->longest;
        fencelock_lock_free(caller->lock);
    }
    pthread_barrier_destroy(&begin);
    printf("did %" PRIu64 " %" PRIu64, total, took);
    if (answer == MEDIAN) printf(" %" PRIu64, middle);
    if (answer == FAIRNESS) printf(" %" PRIu64 " %" PRIu64 " %" PRIu64, least, most, longest);
    puts("");
}

static void enter(fencelock_lock *lock) {
    fencelock_error *error = NULL;
    must(fencelock_lock_enter(lock, NULL, NULL, &error), error);
}

static void leave(fencelock_lock *lock) {
    fencelock_error *error = NULL;
    must(fencelock_lock_leave(lock, NULL, &error), error);
}

static void reenter(const char *key, int held, int64_t span) {
    fencelock_lock **locks = calloc((size_t)held, sizeof *locks);
    for (int at = 0; at < held; at++) enter(locks[at] = lock_of(key, at ? at : -1));
    uint64_t start = now(), count = 0;
    for (; now() - start < (uint64_t)span; count += 100) {
        for (int at = 0; at < 100; at++) {
            enter(locks[0]);
            leave(locks[0]);
        }
    }
    printf("did %" PRIu64 " %" PRIu64 "\n", count, now() - start);
    for (int at = 0; at < held; at++) {
        leave(locks[at]);
        fencelock_lock_free(locks[at]);
    }
    free(locks);
}

static void *keep(void *data) {
    struct held *held = data;
    fencelock_hold *hold = acquire(held->lock, held->lease);
    printf("granted %s %" PRIu64 "\n", held->tag, now());
    sem_wait(&held->told);
    uint64_t at = now();
    release(hold);
    printf("released %s %" PRIu64 "\n", held->tag, at);
    return NULL;
}

static void hold(const char *tag, const char *key, const char *lease) {
    struct held *held = calloc(1, sizeof *held);
    pthread_t thread;
    snprintf(held->tag, sizeof held->tag, "%s", tag);
    held->lock = lock_of(key, -1);
    held->lease = strcmp(lease, "default") == 0 ? 0 : atoll(lease) * FENCELOCK_MILLISECOND;
    sem_init(&held->told, 0, 0);
    held->next = holds;
    holds = held;
    printf("asked %s\n", tag);
    pthread_create(&thread, NULL, keep, held);
    pthread_detach(thread);
}

static void ignore(const fencelock_completion *completion, void *data) {
    (void)completion, (void)data;
}

static void wait_for(int count, const char *key) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    fencelock_lock *lock = lock_of(key, -1);
    fencelock_error *error = NULL;
    options.owner_kind = FENCELOCK_OWNER_FRESH;
    for (int at = 0; at < count; at++)
        must(fencelock_lock_acquire_async(lock, &options, NULL, ignore, NULL, NULL, &error), error);
    printf("waiting %d\n", count);
}

static int64_t millis(const char *word) { return atoll(word) * FENCELOCK_MILLISECOND; }

static void obey(char *words[], int count) {
    const char *verb = words[0];
    if (strcmp(verb, "pairs") == 0 && count == 3) crowd(1, words[1], 0, millis(words[2]), MEDIAN);
    else if (strcmp(verb, "keys") == 0 && count == 4) crowd(atoi(words[1]), words[2], 1, millis(words[3]), RATE);
    else if (strcmp(verb, "hot") == 0 && count == 4) crowd(atoi(words[1]), words[2], 0, millis(words[3]), FAIRNESS);
    else if (strcmp(verb, "reenter") == 0 && count == 4) reenter(words[1], atoi(words[2]), millis(words[3]));
    else if (strcmp(verb, "acquire") == 0 && count == 4) hold(words[1], words[2], words[3]);
    else if (strcmp(verb, "wait") == 0 && count == 3) wait_for(atoi(words[1]), words[2]);
    else if (strcmp(verb, "release") == 0 && count == 2) {
        struct held *held = holds;
        while (held && strcmp(held->tag, words[1]) != 0) held = held->next;
        if (held) sem_post(&held->told);
    } else puts("cannot");
}

// Whoever gives orders may go while callers wait.
static void *end_with_input(void *data) {
    struct pollfd input = {.fd = 0};
    while (poll(&input, 1, -1) < 0 || !(input.revents & POLLHUP)) continue;
    _exit(0);
    return data;
}

int main(int argc, char **argv) {
    char line[1024], *words[8];
    fencelock_error *error = NULL;
    pthread_t watcher;
    if (argc != 3 || strcmp(argv[1], "fencelock") != 0) {
        fprintf(stderr, "usage: driver fencelock URL\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(fencelock_connect(argv[2], FENCELOCK_NTS, NULL, &client, &error), error);
    printf("ready %s\n", fencelock_version());
    pthread_create(&watcher, NULL, end_with_input, NULL);
    while (fgets(line, sizeof line, stdin)) {
        int count = 0;
        for (char *word = strtok(line, " \n"); word && count < 8; word = strtok(NULL, " \n"))
            words[count++] = word;
        if (count > 0) obey(words, count);
    }
    _exit(0);
}
