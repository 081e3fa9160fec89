// Cancelling waits: from another thread, from a signal handler, through an operation.
#include "check.h"

#include <errno.h>
#include <signal.h>

static void by_another_thread(void) {
    struct pair pair = open_pair("cancel");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    fencelock_cancel *cancel = NULL;
    OK(fencelock_cancel_new, &cancel);
    bool triggered = true;
    IS(FENCELOCK_OK, fencelock_cancel_is_triggered(cancel, &triggered));
    CHECK(!triggered);
    struct waiting waiting[3] = {{pair.lock, cancel, FENCELOCK_FOREVER, false, 0, 0},
                                 {pair.lock, cancel, BOUND, false, 0, 0},
                                 {pair.lock, cancel, FENCELOCK_FOREVER, true, 0, 0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_it, &waiting[i]) == 0);
    UNTIL(waiters(pair.client) == 3);
    IS(FENCELOCK_OK, fencelock_cancel_trigger(cancel));
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(waiting[i].status == FENCELOCK_CANCELLED);
    }
    IS(FENCELOCK_OK, fencelock_cancel_is_triggered(cancel, &triggered));
    CHECK(triggered);
    // For good: also what comes later.
    wait_for_it(&waiting[0]);
    CHECK(waiting[0].status == FENCELOCK_CANCELLED);
    IS(FENCELOCK_OK, fencelock_cancel_free(cancel));
    OK(fencelock_hold_release, hold);
    OK(fencelock_hold_release, acquire(pair.lock, fresh(FENCELOCK_TRY)));
    close_pair(pair);
}

static void before_a_try(void) {
    struct pair pair = open_pair("cancelled try");
    fencelock_cancel *cancel = NULL;
    OK(fencelock_cancel_new, &cancel);
    fencelock_acquire_options options = fresh(FENCELOCK_TRY);
    options.cancel = cancel;
    OK(fencelock_hold_release, acquire(pair.lock, options));
    IS(FENCELOCK_OK, fencelock_cancel_trigger(cancel));
    fencelock_hold *none = NULL;
    FAILS(FENCELOCK_CANCELLED, fencelock_lock_acquire, pair.lock, &options, &none);
    fencelock_acquire_options entering = local(1, FENCELOCK_TRY);
    entering.cancel = cancel;
    FAILS(FENCELOCK_CANCELLED, fencelock_lock_enter, pair.lock, &entering, NULL);
    bool locked = true;
    OK(fencelock_lock_is_locked, pair.lock, &locked);
    CHECK(!locked);
    IS(FENCELOCK_OK, fencelock_cancel_free(cancel));
    close_pair(pair);
}

static fencelock_cancel *volatile interrupted;
static volatile sig_atomic_t told;

static void handler(int signal) {
    (void)signal;
    int before = errno;
    told = fencelock_cancel_signal(interrupted) == FENCELOCK_OK ? 1 : 2;
    if (errno != before) told = 3;
}

static void by_a_signal_handler(void) {
    struct pair pair = open_pair("signal");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    struct sigaction action = {0};
    action.sa_handler = handler;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int round = 0; round < 20; round++) {
        fencelock_cancel *cancel = NULL;
        OK(fencelock_cancel_new, &cancel);
        interrupted = cancel;
        told = 0;
        struct waiting waiting = {pair.lock, cancel, FENCELOCK_FOREVER, round % 2 == 1, 0, 0};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, wait_for_it, &waiting) == 0);
        // In some rounds before the wait has begun.
        if (round % 3 != 0) UNTIL(waiters(pair.client) == 1);
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
        pthread_join(thread, NULL);
        CHECK(told == 1 && waiting.status == FENCELOCK_CANCELLED);
        bool triggered = false;
        IS(FENCELOCK_OK, fencelock_cancel_is_triggered(cancel, &triggered));
        CHECK(triggered);
        IS(FENCELOCK_OK, fencelock_cancel_free(cancel));
    }
    OK(fencelock_hold_release, hold);
    close_pair(pair);
}

static void by_its_operation(void) {
    struct pair pair = open_pair("operation");
    fencelock_acquire_options options = fresh(FENCELOCK_FOREVER);
    for (int round = 0; round < 50; round++) {
        fencelock_hold *hold = acquire(pair.lock, fresh(BOUND));
        struct mail mail = {0};
        fencelock_operation *operation = NULL;
        OK(fencelock_lock_acquire_async, pair.lock, &options, NULL, post, &mail, &operation);
        // In half of the rounds, at the same time as the grant.
        if (round % 2 == 0) OK(fencelock_hold_release, hold);
        IS(FENCELOCK_OK, fencelock_operation_cancel(operation));
        IS(FENCELOCK_OK, fencelock_operation_cancel(operation));
        IS(FENCELOCK_OK, fencelock_operation_free(operation));
        if (round % 2 == 1) OK(fencelock_hold_release, hold);
        fencelock_completion completion = collect(&mail);
        if (completion.status == FENCELOCK_OK) {
            OK(fencelock_hold_release, completion.hold);
        } else {
            CHECK(completion.status == FENCELOCK_CANCELLED && completion.hold == NULL);
            check_error(__FILE__, __LINE__, completion.error, FENCELOCK_CANCELLED);
        }
    }
    fencelock_cancel *cancel = NULL;
    OK(fencelock_cancel_new, &cancel);
    options.cancel = cancel;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire_async, pair.lock, &options, NULL, post,
          NULL, NULL);
    IS(FENCELOCK_OK, fencelock_cancel_free(cancel));
    close_pair(pair);
}

const struct test cancel_tests[] = {
    {"cancelled_by_another_thread", by_another_thread},
    {"cancelled_before_a_try", before_a_try},
    {"cancelled_by_a_signal_handler", by_a_signal_handler},
    {"cancelled_by_its_operation", by_its_operation},
    {NULL, NULL},
};
