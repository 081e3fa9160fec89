// Threads that end, or are cancelled, while they have or want a lock.
#include "check.h"

// What a thread does at its end, in a destructor of its own data: after that of the library's data.
struct ending {
    struct pair pair;
    fencelock_lock *other;
    fencelock_hold *released;
    fencelock_hold *freed;
    atomic_int done;
};

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end(void *user_data) {
    struct ending *ending = user_data;
    OK(fencelock_hold_release, ending->released);
    IS(FENCELOCK_OK, fencelock_hold_free(ending->freed));
    OK(fencelock_lock_leave, ending->pair.lock, NULL);
    // Somebody has it until this waits.
    fencelock_acquire_options bounded = fresh(BOUND);
    OK(fencelock_hold_release, acquire(ending->other, bounded));
    struct mail mail = {0};
    fencelock_hold *hold = acquire(ending->other, bounded);
    OK(fencelock_hold_release_async, hold, NULL, post, &mail);
    CHECK(collect(&mail).status == FENCELOCK_OK);
    atomic_store(&ending->done, 1);
}

static void make_key(void) { CHECK(pthread_key_create(&at_end, end) == 0); }

static void *hold_to_the_end(void *user_data) {
    struct ending *ending = user_data;
    fencelock_lock *locks[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        OK(fencelock_client_lock, ending->pair.client, name_of("at end"), FENCELOCK_NTS, &locks[i]);
    ending->released = acquire(locks[0], fresh(FENCELOCK_TRY));
    ending->freed = acquire(locks[1], fresh(FENCELOCK_TRY));
    for (int i = 0; i < 2; i++) IS(FENCELOCK_OK, fencelock_lock_free(locks[i]));
    bool locked = true;
    OK(fencelock_lock_is_locked, ending->pair.lock, &locked);
    CHECK(!locked);
    OK(fencelock_lock_enter, ending->pair.lock, NULL, NULL);
    CHECK(pthread_setspecific(at_end, ending) == 0);
    return NULL;
}

static void a_thread_that_ends_may_call_everything(void) {
    pthread_once(&once, make_key);
    struct ending ending = {.pair = open_pair("ending")};
    OK(fencelock_client_lock, ending.pair.client, name_of("other"), FENCELOCK_NTS, &ending.other);
    fencelock_hold *hold = acquire(ending.other, fresh(FENCELOCK_TRY));
    // Starts the thread of the callbacks.
    OK(fencelock_callbacks_wait, BOUND);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, hold_to_the_end, &ending) == 0);
    UNTIL(waiters(ending.pair.client) == 1);
    OK(fencelock_hold_release, hold);
    UNTIL(atomic_load(&ending.done));
    pthread_join(thread, NULL);
    bool locked = true;
    OK(fencelock_lock_is_locked, ending.pair.lock, &locked);
    CHECK(!locked);
    IS(FENCELOCK_OK, fencelock_lock_free(ending.other));
    close_pair(ending.pair);
}

static void let_go(void *hold) { IS(FENCELOCK_OK, fencelock_hold_free(hold)); }

static void *have_until_cancelled(void *user_data) {
    fencelock_hold *hold = NULL;
    OK(fencelock_lock_acquire, user_data, NULL, &hold);
    // Not in the call, which gave the lock, but here.
    pthread_cleanup_push(let_go, hold);
    for (;;) pthread_testcancel();
    pthread_cleanup_pop(1);
    return NULL;
}

static void a_thread_is_cancelled_after_the_call(void) {
    struct pair pair = open_pair("pthread_cancel");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, have_until_cancelled, pair.lock) == 0);
    UNTIL(waiters(pair.client) == 3);
    for (int i = 0; i < 3; i++) CHECK(pthread_cancel(threads[i]) == 0);
    OK(fencelock_hold_release, hold);
    for (int i = 0; i < 3; i++) {
        void *result = NULL;
        CHECK(pthread_join(threads[i], &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
    }
    OK(fencelock_hold_release, acquire(pair.lock, fresh(BOUND)));
    close_pair(pair);
}

const struct test thread_tests[] = {
    {"a_thread_that_ends_may_call_everything", a_thread_that_ends_may_call_everything},
    {"a_thread_is_cancelled_after_the_call", a_thread_is_cancelled_after_the_call},
    {NULL, NULL},
};
