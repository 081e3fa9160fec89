// One of several sellers, which may be written in any language: sells from the stock in a folder,
// each sale under the lock, until nothing is left. `make demo WITH=c` lets it sell beside others.
//
//     seller URL LOCK FOLDER NAME
#include "stock.h"

#include <fencelock.h>
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void give_up(const char *what, fencelock_error *error) {
    fprintf(stderr, "seller: %s: %s\n", what, fencelock_error_message(error));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: seller URL LOCK FOLDER NAME\n");
        return 2;
    }
    const char *folder = argv[3], *name = argv[4];
    fencelock_connect_options options = FENCELOCK_CONNECT_OPTIONS_INIT;
    options.label = name;
    options.label_length = FENCELOCK_NTS;
    fencelock_client *client = NULL;
    fencelock_lock *lock = NULL;
    fencelock_error *error = NULL;
    if (fencelock_connect(argv[1], FENCELOCK_NTS, &options, &client, &error) ||
        fencelock_client_lock(client, argv[2], FENCELOCK_NTS, &lock, &error))
        give_up("connecting", error);
    enum stock_deed deed = STOCK_SOLD;
    while (deed == STOCK_SOLD) {
        fencelock_hold *hold = NULL;
        uint64_t token = 0;
        if (fencelock_lock_acquire(lock, NULL, &hold, &error)) give_up("acquiring", error);
        fencelock_hold_token(hold, &token);
        deed = stock_sell(folder, name, token, 1000 * 1000);
        if (fencelock_hold_release(hold, &error)) give_up("releasing", error);
    }
    fencelock_lock_free(lock);
    fencelock_client_close(client, 0, NULL);
    fencelock_client_free(client);
    if (deed == STOCK_REFUSED) fprintf(stderr, "seller: the stock refused an old token\n");
    return deed == STOCK_REFUSED;
}
