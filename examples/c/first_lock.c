// The shortest use of a lock. cc first_lock.c $(pkg-config --cflags --libs fencelock)
#include <fencelock.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "memory:";
    fencelock_client *client = NULL;
    fencelock_lock *lock = NULL;
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    fencelock_status status;
    if ((status = fencelock_connect(url, FENCELOCK_NTS, NULL, &client, &error)) ||
        (status = fencelock_client_lock(client, "stock/coupon-7", FENCELOCK_NTS, &lock, &error)) ||
        (status = fencelock_lock_acquire(lock, NULL, &hold, &error))) {
        fprintf(stderr, "%s: %s\n", fencelock_status_name(status), fencelock_error_message(error));
        return 1;
    }
    uint64_t token = 0;
    fencelock_hold_token(hold, &token);
    printf("held under token %" PRIu64 "\n", token); // send it along with every write
    status = fencelock_hold_release(hold, &error);   // FENCELOCK_LOST if the lease ended meanwhile
    if (status) fprintf(stderr, "not released: %s\n", fencelock_error_message(error));
    fencelock_error_free(error);
    fencelock_lock_free(lock);
    fencelock_client_close(client, 0, NULL);
    fencelock_client_free(client);
    return status != FENCELOCK_OK;
}
