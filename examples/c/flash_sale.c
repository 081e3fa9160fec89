// A flash sale: several processes sell from one stock, which each reads, looks at, and writes back.
// First without a lock, which sells too much; then with one, where a seller is killed in the middle.
//
//     flash_sale [URL]     any store that processes share; sqlite:… by default
//
// Exits with 0 when the sale under the lock sold exactly what there was.
#include "stock.h"

#include <fencelock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SELLERS 6
#define STOCK 60

// The folder with the stock, and what the sellers tell their parent beside it.
static char folder[] = "/tmp/flash_sale_XXXXXX";
static volatile struct {
    int refused;
    int told_of_the_dead;
} *notes;

// Sells one; gives whether there was one. `token` is 0 when there is no lock.
static int sell(uint64_t token) {
    enum stock_deed deed = stock_sell(folder, "c", token, 200 * 1000);
    if (deed == STOCK_REFUSED) notes->refused++;
    return deed != STOCK_EMPTY;
}

static _Noreturn void give_up(const char *what, fencelock_error *error) {
    fprintf(stderr, "flash_sale: %s: %s\n", what, fencelock_error_message(error));
    exit(1);
}

static void sell_under_lock(const char *url, const char *name, int seller) {
    fencelock_connect_options options = FENCELOCK_CONNECT_OPTIONS_INIT;
    options.lease_ns = FENCELOCK_SECOND; // how long a seller that was killed holds the others up
    options.label = "flash sale";
    options.label_length = FENCELOCK_NTS;
    fencelock_client *client = NULL;
    fencelock_lock *lock = NULL;
    fencelock_error *error = NULL;
    // After the fork: a client does not survive one.
    if (fencelock_connect(url, FENCELOCK_NTS, &options, &client, &error) ||
        fencelock_client_lock(client, name, FENCELOCK_NTS, &lock, &error))
        give_up("connecting", error);
    for (int more = 1, round = 0; more; round++) {
        fencelock_hold *hold = NULL;
        if (fencelock_lock_acquire(lock, NULL, &hold, &error)) give_up("acquiring", error);
        fencelock_abandoned previous = FENCELOCK_ABANDONED_NO;
        fencelock_hold_previous_abandoned(hold, &previous);
        if (previous == FENCELOCK_ABANDONED_YES) notes->told_of_the_dead++;
        uint64_t token = 0;
        fencelock_hold_token(hold, &token);
        if (seller == 0 && round == 2) {
            // Dies holding the lock. The store has heard from it: one that died right after the lock
            // was handed to it would leave the next with FENCELOCK_ABANDONED_UNKNOWN.
            fencelock_hold_extend(hold, FENCELOCK_SECOND, NULL);
            raise(SIGKILL);
        }
        more = sell(token);
        fencelock_status status = fencelock_hold_release(hold, &error);
        // A lock that was lost is the ledger's affair: it refuses what comes too late.
        if (status != FENCELOCK_OK && status != FENCELOCK_LOST) give_up("releasing", error);
        fencelock_error_free(error);
    }
    fencelock_lock_free(lock);
    fencelock_client_close(client, 0, NULL);
    fencelock_client_free(client);
}

static void remove_file(const char *name) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    unlink(file);
}

// Runs one sale; gives how many sellers did not come back well.
static int sale(const char *url, const char *name) {
    memset((void *)notes, 0, sizeof *notes);
    remove_file("sales");
    stock_write(folder, STOCK, 0);
    pid_t sellers[SELLERS];
    fflush(stdout);
    for (int i = 0; i < SELLERS; i++) {
        sellers[i] = fork();
        if (sellers[i] < 0) {
            perror("flash_sale: fork");
            exit(1);
        }
        if (sellers[i] == 0) {
            if (url != NULL) sell_under_lock(url, name, i);
            while (url == NULL && sell(0)) {
            }
            _exit(0);
        }
    }
    int fallen = 0;
    for (int i = 0; i < SELLERS; i++) {
        int status = 0;
        if (waitpid(sellers[i], &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fallen++;
    }
    printf("%-14s %3d of %d sold, %d refused by their token, %d seller killed\n",
           url == NULL ? "without a lock" : "with a lock", stock_sold(folder), STOCK, notes->refused, fallen);
    return fallen;
}

int main(int argc, char **argv) {
    char url[300], name[64];
    if (mkdtemp(folder) == NULL) {
        perror("flash_sale: mkdtemp");
        return 1;
    }
    if (argc > 1)
        snprintf(url, sizeof url, "%s", argv[1]);
    else
        snprintf(url, sizeof url, "sqlite:%s/locks.db", folder);
    snprintf(name, sizeof name, "flash-sale/%d/%ld", (int)getpid(), (long)time(NULL));
    notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (notes == MAP_FAILED) {
        perror("flash_sale: mmap");
        return 1;
    }
    sale(NULL, NULL);
    int oversold = stock_sold(folder) > STOCK;
    int fallen = sale(url, name);
    int left = 0;
    uint64_t newest = 0;
    stock_read(folder, &left, &newest);
    int well = stock_sold(folder) == STOCK && left == 0 && fallen == 1 && notes->told_of_the_dead > 0;
    const char *behind[] = {"stock", "sales", "locks.db", "locks.db-wal", "locks.db-shm"};
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) remove_file(behind[i]);
    rmdir(folder);
    printf("%s; %s\n", oversold ? "without a lock, too much was sold" : "no clash without a lock",
           well ? "with one, exactly what there was, although a seller died with the lock"
                : "with one, something is WRONG");
    return !well;
}
