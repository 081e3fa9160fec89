// Entering and leaving.
#include "check.h"

static void entering_is_counted(void) {
    struct pair pair = open_pair("enter");
    uint64_t token = 0, again = 0, depth = 9;
    OK(fencelock_lock_enter, pair.lock, NULL, &token);
    OK(fencelock_lock_enter, pair.lock, NULL, &again);
    CHECK(token > 0 && token == again);
    OK(fencelock_lock_enter, pair.lock, NULL, NULL);
    IS(FENCELOCK_OK, fencelock_lock_depth(pair.lock, NULL, &depth));
    CHECK(depth == 3);
    fencelock_hold *hold = NULL;
    OK(fencelock_lock_entered, pair.lock, NULL, &hold);
    CHECK(token_of(hold) == token);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    OK(fencelock_lock_leave, pair.lock, NULL);
    OK(fencelock_lock_leave, pair.lock, NULL);
    bool locked = false;
    OK(fencelock_lock_is_locked, pair.lock, &locked);
    CHECK(locked);
    OK(fencelock_lock_leave, pair.lock, NULL);
    OK(fencelock_lock_is_locked, pair.lock, &locked);
    CHECK(!locked);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave, pair.lock, NULL);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_entered, pair.lock, NULL, &hold);
    OK(fencelock_lock_enter, pair.lock, NULL, &again);
    CHECK(again > token);
    OK(fencelock_lock_leave, pair.lock, NULL);
    close_pair(pair);
}

static void *leave_elsewhere(void *lock) {
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave, lock, NULL);
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.timeout_ns = FENCELOCK_TRY;
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_enter, lock, &options, NULL);
    return NULL;
}

static void only_the_owner_leaves(void) {
    struct pair pair = open_pair("leave");
    OK(fencelock_lock_enter, pair.lock, NULL, NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leave_elsewhere, pair.lock) == 0);
    pthread_join(thread, NULL);
    fencelock_acquire_options one = local(1, FENCELOCK_TRY), two = local(2, FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_enter, pair.lock, &one, NULL);
    OK(fencelock_lock_leave, pair.lock, NULL);
    OK(fencelock_lock_enter, pair.lock, &one, NULL);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_enter, pair.lock, &two, NULL);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave, pair.lock, &two);
    OK(fencelock_lock_leave, pair.lock, &one);
    fencelock_acquire_options other = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_enter, pair.lock, &other, NULL);
    other = explicitly("x", FENCELOCK_TRY);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_leave, pair.lock, &other);
    close_pair(pair);
}

static void a_lost_entry_is_entered_anew(void) {
    struct pair pair = open_pair("lost entry");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    uint64_t token = 0, again = 0, ended = 0, later = 0;
    OK(fencelock_lock_enter, pair.lock, NULL, &token);
    OK(fencelock_client_break, pair.client, name.data, name.length, token, &ended, &later);
    fencelock_hold *hold = NULL;
    OK(fencelock_lock_entered, pair.lock, NULL, &hold);
    bool valid = true;
    UNTIL(fencelock_hold_is_valid(hold, &valid) == FENCELOCK_OK && !valid);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    OK(fencelock_lock_enter, pair.lock, NULL, &again);
    CHECK(again > token);
    OK(fencelock_lock_leave, pair.lock, NULL);
    FAILS(FENCELOCK_LOST, fencelock_lock_leave, pair.lock, NULL);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave, pair.lock, NULL);
    close_pair(pair);
}

static fencelock_lock *another_handle(struct pair pair) {
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    fencelock_lock *other = NULL;
    OK(fencelock_client_lock, pair.client, name.data, name.length, &other);
    return other;
}

static void a_lock_freed_while_entered_is_released(void) {
    struct pair pair = open_pair("freed while entered");
    fencelock_lock *other = another_handle(pair);
    OK(fencelock_lock_enter, pair.lock, NULL, NULL);
    IS(FENCELOCK_OK, fencelock_lock_free(pair.lock));
    fencelock_hold *hold = acquire(other, fresh(BOUND));
    OK(fencelock_hold_release, hold);
    pair.lock = other;
    close_pair(pair);
}

static void who_waits_to_enter_a_freed_lock_is_cancelled(void) {
    struct pair pair = open_pair("freed while waited for");
    fencelock_lock *other = another_handle(pair);
    OK(fencelock_lock_enter, pair.lock, NULL, NULL);
    fencelock_acquire_options one = local(1, FENCELOCK_FOREVER);
    struct mail waiter = {0};
    OK(fencelock_lock_enter_async, pair.lock, &one, NULL, post, &waiter, NULL);
    IS(FENCELOCK_OK, fencelock_lock_free(pair.lock));
    fencelock_completion ended = collect(&waiter);
    CHECK(ended.status == FENCELOCK_CANCELLED);
    IS(FENCELOCK_OK, fencelock_error_free(ended.error));
    fencelock_hold *hold = acquire(other, fresh(BOUND));
    OK(fencelock_hold_release, hold);
    pair.lock = other;
    close_pair(pair);
}

// However long another has it.
static void who_waits_to_enter_a_freed_lock_is_cancelled_at_once(void) {
    struct pair pair = open_pair("freed while another holds");
    fencelock_lock *other = another_handle(pair);
    fencelock_hold *hold = acquire(other, fresh(FENCELOCK_TRY));
    fencelock_acquire_options one = local(1, FENCELOCK_FOREVER);
    struct mail waiter = {0};
    OK(fencelock_lock_enter_async, pair.lock, &one, NULL, post, &waiter, NULL);
    fencelock_cancel *cancel = NULL;
    OK(fencelock_cancel_new, &cancel);
    struct waiting blocked[2] = {{pair.lock, NULL, FENCELOCK_FOREVER, true, 0, 0},
                                 {pair.lock, cancel, FENCELOCK_FOREVER, true, 0, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_it, &blocked[i]) == 0);
    UNTIL(waiters(pair.client) == 3);
    IS(FENCELOCK_OK, fencelock_lock_free(pair.lock));
    fencelock_completion ended = collect(&waiter);
    CHECK(ended.status == FENCELOCK_CANCELLED);
    IS(FENCELOCK_OK, fencelock_error_free(ended.error));
    for (int i = 0; i < 2; i++) {
        UNTIL(atomic_load(&blocked[i].ended));
        pthread_join(threads[i], NULL);
        CHECK(blocked[i].status == FENCELOCK_CANCELLED);
    }
    bool flag = true;
    IS(FENCELOCK_OK, fencelock_cancel_is_triggered(cancel, &flag));
    CHECK(!flag);
    IS(FENCELOCK_OK, fencelock_cancel_free(cancel));
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &flag));
    CHECK(flag);
    OK(fencelock_hold_release, hold);
    pair.lock = other;
    close_pair(pair);
}

static void a_counted_leave_tells_of_the_loss_in_its_completion(void) {
    struct pair pair = open_pair("lost leave");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    OK(fencelock_lock_enter, pair.lock, NULL, NULL);
    OK(fencelock_lock_enter, pair.lock, NULL, NULL);
    fencelock_hold *hold = NULL;
    OK(fencelock_lock_entered, pair.lock, NULL, &hold);
    uint64_t ended = 0, depth = 0, later = 0;
    OK(fencelock_client_break, pair.client, name.data, name.length, UINT64_MAX, &ended, &later);
    bool valid = true;
    UNTIL(fencelock_hold_is_valid(hold, &valid) == FENCELOCK_OK && !valid);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    struct mail mail = {0};
    for (uint64_t left = 2; left-- > 0;) {
        fencelock_completion now = FENCELOCK_COMPLETION_INIT;
        OK(fencelock_lock_leave_async, pair.lock, NULL, left == 1 ? &now : NULL, post, &mail);
        fencelock_completion told = left == 1 ? now : collect(&mail);
        CHECK(told.ended);
        CHECK(told.status == FENCELOCK_LOST);
        check_error(__FILE__, __LINE__, told.error, FENCELOCK_LOST);
        IS(FENCELOCK_OK, fencelock_lock_depth(pair.lock, NULL, &depth));
        CHECK(depth == left);
    }
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave_async, pair.lock, NULL, NULL, post, &mail);
    close_pair(pair);
}

static void entering_need_not_block(void) {
    struct pair pair = open_pair("enter async");
    fencelock_acquire_options one = local(1, BOUND), two = local(2, BOUND);
    struct mail first = {0}, second = {0};
    OK(fencelock_lock_enter_async, pair.lock, &one, NULL, post, &first, NULL);
    fencelock_completion entered = collect(&first);
    CHECK(entered.status == FENCELOCK_OK && entered.number > 0);
    // Again: at once.
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    OK(fencelock_lock_enter_async, pair.lock, &one, &now, post, &first, NULL);
    CHECK(now.ended && now.status == FENCELOCK_OK && now.number == entered.number);
    now = (fencelock_completion)FENCELOCK_COMPLETION_INIT;
    OK(fencelock_lock_enter_async, pair.lock, &two, &now, post, &second, NULL);
    CHECK(!now.ended);
    OK(fencelock_lock_leave_async, pair.lock, &one, &now, post, &first);
    CHECK(now.ended && now.status == FENCELOCK_OK);
    CHECK(atomic_load(&second.count) == 0);
    OK(fencelock_lock_leave_async, pair.lock, &one, NULL, post, &first);
    CHECK(collect(&first).status == FENCELOCK_OK);
    fencelock_completion next = collect(&second);
    CHECK(next.status == FENCELOCK_OK && next.number > entered.number);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave_async, pair.lock, &one, NULL, post, &first);
    OK(fencelock_lock_leave, pair.lock, &two);
    close_pair(pair);
}

const struct test enter_tests[] = {
    {"entering_is_counted", entering_is_counted},
    {"only_the_owner_leaves", only_the_owner_leaves},
    {"a_lost_entry_is_entered_anew", a_lost_entry_is_entered_anew},
    {"a_lock_freed_while_entered_is_released", a_lock_freed_while_entered_is_released},
    {"who_waits_to_enter_a_freed_lock_is_cancelled", who_waits_to_enter_a_freed_lock_is_cancelled},
    {"who_waits_to_enter_a_freed_lock_is_cancelled_at_once",
     who_waits_to_enter_a_freed_lock_is_cancelled_at_once},
    {"a_counted_leave_tells_of_the_loss_in_its_completion",
     a_counted_leave_tells_of_the_loss_in_its_completion},
    {"entering_need_not_block", entering_need_not_block},
    {NULL, NULL},
};
