// Closing, also while other threads are in the middle of everything.
#include "check.h"

static void draining_waits_for_what_is_held(void) {
    struct pair pair = open_pair("drain");
    fencelock_hold *hold = acquire(pair.lock, local(1, FENCELOCK_TRY));
    struct mail drained = {0}, waiter = {0};
    fencelock_acquire_options second = local(2, FENCELOCK_FOREVER);
    OK(fencelock_lock_acquire_async, pair.lock, &second, NULL, post, &waiter, NULL);
    OK(fencelock_client_close_async, pair.client, FENCELOCK_FOREVER, post, &drained);
    fencelock_acquire_options third = local(3, FENCELOCK_TRY);
    fencelock_hold *none = NULL;
    UNTIL(fencelock_lock_acquire(pair.lock, &third, &none, NULL) == FENCELOCK_CLOSED);
    CHECK(atomic_load(&drained.count) == 0);
    OK(fencelock_hold_release, hold);
    OK(fencelock_hold_release, collect(&waiter).hold);
    CHECK(collect(&drained).status == FENCELOCK_OK);
    FAILS(FENCELOCK_CLOSED, fencelock_lock_acquire, pair.lock, &third, &none);
    close_pair(pair);

    pair = open_pair("drained too late");
    hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    FAILS(FENCELOCK_TIMED_OUT, fencelock_client_close, pair.client, 20 * FENCELOCK_MILLISECOND);
    bool valid = true;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &valid));
    CHECK(!valid);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    close_pair(pair);
}

static void a_close_with_no_time_says_ok_and_tells_the_holder(void) {
    struct pair pair = open_pair("no time");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_FOREVER));
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_close, pair.client, -2);
    bool state = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &state));
    CHECK(state);
    OK(fencelock_client_close, pair.client, 0);
    uint64_t token = 0;
    FAILS(FENCELOCK_LOST, fencelock_hold_check, hold, &token);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    close_pair(pair);
}

static void a_closed_client_answers_so(void) {
    struct pair pair = open_pair("closed");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    struct mail waiter = {0};
    fencelock_acquire_options options = fresh(FENCELOCK_FOREVER);
    OK(fencelock_lock_acquire_async, pair.lock, &options, NULL, post, &waiter, NULL);
    OK(fencelock_client_close, pair.client, 0);
    OK(fencelock_client_close, pair.client, 0);
    fencelock_completion completion = collect(&waiter);
    CHECK(completion.status == FENCELOCK_CLOSED || completion.status == FENCELOCK_CANCELLED);
    check_error(__FILE__, __LINE__, completion.error, completion.status);
    FAILS(FENCELOCK_LOST, fencelock_hold_release, hold);
    int64_t now = 0;
    FAILS(FENCELOCK_CLOSED, fencelock_client_ping, pair.client, &now);
    fencelock_hold *none = NULL;
    FAILS(FENCELOCK_CLOSED, fencelock_lock_acquire, pair.lock, NULL, &none);
    FAILS(FENCELOCK_CLOSED, fencelock_lock_enter, pair.lock, NULL, NULL);
    close_pair(pair);
}

#define THREADS 6

static struct {
    fencelock_client *_Atomic client;
    fencelock_lock *_Atomic lock;
    atomic_int granted, callbacks, asked;
    atomic_bool stop;
} load;

static void count_and_free(const fencelock_completion *completion, void *unused) {
    (void)unused;
    fencelock_error_free(completion->error);
    if (completion->hold != NULL) IS(FENCELOCK_OK, fencelock_hold_free(completion->hold));
    atomic_fetch_add(&load.callbacks, 1);
}

// Uses handles that another thread closes and frees at any moment.
static void *use(void *number) {
    unsigned turn = (unsigned)(uintptr_t)number;
    while (!atomic_load(&load.stop)) {
        fencelock_client *client = atomic_load(&load.client);
        fencelock_lock *lock = atomic_load(&load.lock);
        fencelock_hold *hold = NULL;
        fencelock_acquire_options options = fresh(turn % 2 ? FENCELOCK_TRY : BOUND);
        fencelock_status status;
        switch (turn++ % 6) {
        case 0:
        case 1:
            status = fencelock_lock_acquire(lock, &options, &hold, NULL);
            if (status == FENCELOCK_OK) {
                atomic_fetch_add(&load.granted, 1);
                uint64_t token = 0;
                IS(FENCELOCK_OK, fencelock_hold_token(hold, &token));
                status = fencelock_hold_release(hold, NULL);
            }
            break;
        case 2:
            status = fencelock_lock_acquire_async(lock, &options, NULL, count_and_free, NULL, NULL,
                                                  NULL);
            if (status == FENCELOCK_OK) atomic_fetch_add(&load.asked, 1);
            break;
        case 3:
            status = fencelock_lock_enter(lock, &options, NULL, NULL);
            CHECK(status == FENCELOCK_INVALID_ARGUMENT);
            options.owner_kind = FENCELOCK_OWNER_THREAD;
            status = fencelock_lock_enter(lock, &options, NULL, NULL);
            if (status == FENCELOCK_OK) status = fencelock_lock_leave(lock, NULL, NULL);
            // Freed in between: nobody is in the new one.
            if (status == FENCELOCK_NOT_HELD) status = FENCELOCK_INVALID_ARGUMENT;
            break;
        case 4: {
            int64_t now = 0;
            status = fencelock_client_ping(client, &now, NULL);
            break;
        }
        default: {
            fencelock_counters counters = {.size = sizeof counters};
            status = fencelock_client_counters(client, &counters);
        }
        }
        CHECK(status == FENCELOCK_OK || status == FENCELOCK_CONTENDED ||
              status == FENCELOCK_CLOSED || status == FENCELOCK_CANCELLED ||
              status == FENCELOCK_LOST || status == FENCELOCK_TIMED_OUT ||
              status == FENCELOCK_INVALID_ARGUMENT);
    }
    return NULL;
}

static void closing_under_load_harms_nobody(void) {
    const char *name = name_of("load");
    char kept[200];
    strcpy(kept, name);
    memset(&load, 0, sizeof load);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, use, (void *)(uintptr_t)i) == 0);
    for (int round = 0; round < 25; round++) {
        fencelock_client *client = client_of_store();
        fencelock_lock *lock = NULL;
        OK(fencelock_client_lock, client, kept, FENCELOCK_NTS, &lock);
        int before = atomic_load(&load.granted);
        atomic_store(&load.client, client);
        atomic_store(&load.lock, lock);
        UNTIL(atomic_load(&load.granted) > before + 5);
        if (round % 3 == 0) IS(FENCELOCK_OK, fencelock_lock_free(lock));
        if (round % 2 == 0) OK(fencelock_client_close, client, 0);
        IS(FENCELOCK_OK, fencelock_client_free(client));
        if (round % 3 != 0) IS(FENCELOCK_OK, fencelock_lock_free(lock));
    }
    atomic_store(&load.stop, true);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    UNTIL(atomic_load(&load.callbacks) == atomic_load(&load.asked));
}

static void a_client_that_is_only_freed_gives_its_locks_up(void) {
    struct pair pair = open_pair("only freed");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    fencelock_client *other = client_of_store();
    fencelock_lock *theirs = NULL;
    OK(fencelock_client_lock, other, name.data, name.length, &theirs);
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    IS(FENCELOCK_OK, fencelock_client_free(pair.client));
    IS(FENCELOCK_OK, fencelock_lock_free(pair.lock));
    // The hold keeps the client.
    bool valid = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &valid));
    CHECK(valid);
    fencelock_hold *none = NULL;
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_acquire, theirs, &try, &none);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    OK(fencelock_hold_release, acquire(theirs, fresh(BOUND)));
    pair.client = other;
    pair.lock = theirs;
    close_pair(pair);
}

const struct test close_tests[] = {
    {"draining_waits_for_what_is_held", draining_waits_for_what_is_held},
    {"a_close_with_no_time_says_ok_and_tells_the_holder",
     a_close_with_no_time_says_ok_and_tells_the_holder},
    {"a_closed_client_answers_so", a_closed_client_answers_so},
    {"closing_under_load_harms_nobody", closing_under_load_harms_nobody},
    {"a_client_that_is_only_freed_gives_its_locks_up",
     a_client_that_is_only_freed_gives_its_locks_up},
    {NULL, NULL},
};
