// What a forked child has of its parent.
#include "check.h"

#include <sys/wait.h>

// A token of the parent's ends a wait of the child's, be it signalled before or meanwhile.
static void cancel_as_a_handler_does(fencelock_client *own, fencelock_lock *lock,
                                     fencelock_cancel *cancel, bool before) {
    if (before) IS(FENCELOCK_OK, fencelock_cancel_signal(cancel));
    struct waiting waiting = {lock, cancel, FENCELOCK_FOREVER, false, 0, 0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_it, &waiting) == 0);
    if (!before) {
        UNTIL(waiters(own) == 1);
        IS(FENCELOCK_OK, fencelock_cancel_signal(cancel));
    }
    UNTIL(atomic_load(&waiting.ended));
    pthread_join(thread, NULL);
    CHECK(waiting.status == FENCELOCK_CANCELLED);
    IS(FENCELOCK_OK, fencelock_cancel_free(cancel));
}

static _Noreturn void child(struct pair pair, fencelock_hold *hold, uint64_t token,
                            fencelock_cancel *cancels[2]) {
    bool flag = true;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &flag));
    CHECK(!flag);
    uint64_t number = 0;
    FAILS(FENCELOCK_LOST, fencelock_hold_check, hold, &number);
    IS(FENCELOCK_OK, fencelock_hold_token(hold, &number));
    CHECK(number == token);
    fencelock_hold *none = NULL;
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_CLOSED, fencelock_lock_acquire, pair.lock, &try, &none);
    fencelock_lock *lock = NULL;
    FAILS(FENCELOCK_CLOSED, fencelock_client_lock, pair.client, "x", 1, &lock);
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    if (strncmp(store, "zk:", 3) == 0) {
        // It cannot: what polls the sockets there is a thread that a fork does not copy.
        fencelock_client *own = NULL;
        FAILS(FENCELOCK_UNSUPPORTED, fencelock_connect, store, FENCELOCK_NTS, NULL, &own);
        CHECK(own == NULL);
    } else if (strncmp(store, "memory:", 7) != 0) {
        // A client of its own sees the parent's hold; callbacks and cancelling work here, too.
        fencelock_client *own = client_of_store();
        OK(fencelock_client_lock, own, name.data, name.length, &lock);
        FAILS(FENCELOCK_CONTENDED, fencelock_lock_acquire, lock, &try, &none);
        IS(FENCELOCK_OK, fencelock_lock_free(lock));
        OK(fencelock_client_lock, own, "the child's own", FENCELOCK_NTS, &lock);
        fencelock_hold *mine = acquire(lock, fresh(BOUND));
        struct mail mail = {0};
        OK(fencelock_hold_release_async, mine, NULL, post, &mail);
        CHECK(collect(&mail).status == FENCELOCK_OK);
        mine = acquire(lock, fresh(BOUND));
        cancel_as_a_handler_does(own, lock, cancels[0], true);
        cancel_as_a_handler_does(own, lock, cancels[1], false);
        fencelock_cancel *cancel = NULL;
        OK(fencelock_cancel_new, &cancel);
        cancel_as_a_handler_does(own, lock, cancel, false);
        OK(fencelock_hold_release, mine);
        IS(FENCELOCK_OK, fencelock_lock_free(lock));
        OK(fencelock_client_close, own, 0);
        IS(FENCELOCK_OK, fencelock_client_free(own));
    }
    fencelock_error *error = NULL;
    CHECK(fencelock_hold_release(hold, &error) != FENCELOCK_OK);
    IS(FENCELOCK_OK, fencelock_error_free(error));
    fencelock_client_close(pair.client, 0, NULL);
    IS(FENCELOCK_OK, fencelock_lock_free(pair.lock));
    IS(FENCELOCK_OK, fencelock_client_free(pair.client));
    _exit(0);
}

static void a_child_has_none_of_its_parents_holds(void) {
    struct pair pair = open_pair("fork");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    uint64_t token = token_of(hold);
    fencelock_cancel *cancels[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) OK(fencelock_cancel_new, &cancels[i]);
    // The thread that hears signals rests by now: one that just starts allocates, and what the
    // sanitizer's allocator has locked at that moment stays so in the child.
    fencelock_cancel *rested = NULL;
    OK(fencelock_cancel_new, &rested);
    cancel_as_a_handler_does(pair.client, pair.lock, rested, false);
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(pair, hold, token, cancels);
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    // The parent's is not disturbed.
    uint64_t checked = 0;
    OK(fencelock_hold_check, hold, &checked);
    CHECK(checked == token);
    for (int i = 0; i < 2; i++) {
        bool triggered = true;
        IS(FENCELOCK_OK, fencelock_cancel_is_triggered(cancels[i], &triggered));
        CHECK(!triggered);
        IS(FENCELOCK_OK, fencelock_cancel_free(cancels[i]));
    }
    OK(fencelock_hold_release, hold);
    OK(fencelock_hold_release, acquire(pair.lock, fresh(FENCELOCK_TRY)));
    close_pair(pair);
}

const struct test fork_tests[] = {
    {"a_child_has_none_of_its_parents_holds", a_child_has_none_of_its_parents_holds},
    {NULL, NULL},
};
