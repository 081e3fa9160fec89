// What a program may do wrong: each gives a status, and does no harm.
#include "check.h"

static int local_variable;

// NULL, numbers, an address, handles of other kinds, and one that was freed.
static void every_wrong_handle(void (*try)(void *)) {
    struct pair pair = open_pair("wrong");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    fencelock_hold *freed = hold;
    OK(fencelock_hold_release, hold);
    fencelock_cancel *cancel = NULL;
    OK(fencelock_cancel_new, &cancel);
    fencelock_cancel *other = cancel;
    IS(FENCELOCK_OK, fencelock_cancel_free(other));
    fencelock_text *text = NULL;
    OK(fencelock_client_id, pair.client, &text);
    void *wrong[] = {NULL,          (void *)1,
                     (void *)-1,    &local_variable,
                     freed,         cancel,
                     text,          (void *)((uintptr_t)text ^ 1),
                     (void *)((uintptr_t)text + ((uintptr_t)1 << 32)), (void *)"text"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) try(wrong[i]);
    IS(FENCELOCK_OK, fencelock_text_free(text));
    IS(FENCELOCK_INVALID_ARGUMENT, fencelock_text_free(text));
    close_pair(pair);
}

#define WRONG(call_) IS(FENCELOCK_INVALID_ARGUMENT, call_)

static void try_client(void *handle) {
    fencelock_client *client = handle;
    fencelock_lock *lock = NULL;
    fencelock_hold *hold = NULL;
    fencelock_text *text = NULL;
    fencelock_names *names = NULL;
    fencelock_inspection *inspection = NULL;
    fencelock_counters counters = {.size = sizeof counters};
    fencelock_capabilities known = {.size = sizeof known};
    uint64_t number = 0;
    int64_t time = 0;
    bool flag = false;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, client, "x", 1, &lock);
    fencelock_rwlock *rwlock = NULL;
    fencelock_semaphore *semaphore = NULL;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_rwlock, client, "x", 1, &rwlock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_semaphore, client, "x", 1, 3, &semaphore);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_attach, client, "x", 1, &hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_id, client, &text);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_metrics, client, &text);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_list, client, NULL, 0, 1, &names);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_inspect, client, "x", 1, &inspection);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_break, client, "x", 1, 1, &number, &number);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_ping, client, &time);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_close, client, 0);
    WRONG(fencelock_client_counters(client, &counters));
    WRONG(fencelock_client_capabilities(client, &known));
    WRONG(fencelock_client_is_closed(client, &flag));
    WRONG(fencelock_client_is_idle(client, &flag));
    struct mail mail = {0};
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_ping_async, client, post, &mail);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_close_async, client, 0, post, &mail);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_list_async, client, NULL, 0, 1, post, &mail);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_inspect_async, client, "x", 1, post, &mail);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_break_async, client, "x", 1, 1, post,
          &mail);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_attach_async, client, "x", 1, NULL, post,
          &mail, NULL);
    if (handle != NULL) WRONG(fencelock_client_free(client));
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(atomic_load(&mail.count) == 0);
}

static void try_lock(void *handle) {
    fencelock_lock *lock = handle;
    fencelock_hold *hold = NULL;
    fencelock_string name;
    uint64_t number = 0;
    bool flag = false;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, lock, NULL, &hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_enter, lock, NULL, &number);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_leave, lock, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_entered, lock, NULL, &hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_is_locked, lock, &flag);
    WRONG(fencelock_lock_name(lock, &name));
    WRONG(fencelock_lock_depth(lock, NULL, &number));
    WRONG(fencelock_lock_hold_count(lock, NULL, &number));
    struct mail mail = {0};
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire_async, lock, NULL, NULL, post, &mail,
          NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_enter_async, lock, NULL, NULL, post, &mail,
          NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_leave_async, lock, NULL, NULL, post, &mail);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_is_locked_async, lock, post, &mail);
    if (handle != NULL) WRONG(fencelock_lock_free(lock));
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(atomic_load(&mail.count) == 0);
}

static void try_rwlock(void *handle) {
    fencelock_rwlock *rwlock = handle;
    fencelock_lock *lock = NULL;
    fencelock_hold *hold = NULL;
    fencelock_string name;
    struct mail mail = {0};
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_acquire_read, rwlock, NULL, &hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_acquire_write, rwlock, NULL, &hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_acquire_read_async, rwlock, NULL, NULL, post,
          &mail, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_acquire_write_async, rwlock, NULL, NULL, post,
          &mail, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_reader, rwlock, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_writer, rwlock, &lock);
    WRONG(fencelock_rwlock_name(rwlock, &name));
    if (handle != NULL) WRONG(fencelock_rwlock_free(rwlock));
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(hold == NULL && lock == NULL && atomic_load(&mail.count) == 0);
}

static void try_semaphore(void *handle) {
    fencelock_semaphore *semaphore = handle;
    fencelock_hold *hold = NULL;
    fencelock_string name;
    uint32_t number = 0;
    struct mail mail = {0};
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire, semaphore, 1, NULL, &hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire_async, semaphore, 1, NULL, NULL, post,
          &mail, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_available_permits, semaphore, &number);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_available_permits_async, semaphore, post,
          &mail);
    bool resized = false;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_resize, semaphore, 2, &resized);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_resize_async, semaphore, 2, post, &mail);
    WRONG(fencelock_semaphore_name(semaphore, &name));
    WRONG(fencelock_semaphore_permits(semaphore, &number));
    if (handle != NULL) WRONG(fencelock_semaphore_free(semaphore));
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(hold == NULL && atomic_load(&mail.count) == 0);
}

static void never(fencelock_loss reason, void *user_data) {
    (void)reason, (void)user_data;
    CHECK(!"called");
}

static void never_either(void *user_data) {
    (void)user_data;
    CHECK(!"called");
}

static void try_hold(void *handle) {
    fencelock_hold *hold = handle;
    fencelock_text *text = NULL;
    fencelock_string name;
    fencelock_abandoned previous = 0;
    uint64_t token = 0;
    int64_t remaining = 0;
    bool flag = false;
    WRONG(fencelock_hold_name(hold, &name));
    WRONG(fencelock_hold_token(hold, &token));
    WRONG(fencelock_hold_is_valid(hold, &flag));
    WRONG(fencelock_hold_remaining(hold, &remaining));
    WRONG(fencelock_hold_is_reentry(hold, &flag));
    WRONG(fencelock_hold_is_wanted(hold, &flag));
    WRONG(fencelock_hold_previous_abandoned(hold, &previous));
    fencelock_mode mode = 0;
    WRONG(fencelock_hold_mode(hold, &mode));
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_downgrade, hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_try_upgrade, hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_downgrade_async, hold, NULL, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_try_upgrade_async, hold, NULL, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_check, hold, &token);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_extend, hold, FENCELOCK_SECOND);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_ticket, hold, &text);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_on_lost, hold, never, NULL, never_either);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_on_wanted, hold, never_either, NULL,
          never_either);
    struct mail mail = {0};
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_extend_async, hold, FENCELOCK_SECOND, NULL,
          post, &mail);
    fencelock_status gone = handle == NULL ? FENCELOCK_INVALID_ARGUMENT : FENCELOCK_NOT_HELD;
    FAILS(gone, fencelock_hold_release, hold);
    FAILS(gone, fencelock_hold_release_async, hold, NULL, post, &mail);
    if (handle != NULL) WRONG(fencelock_hold_free(hold));
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(atomic_load(&mail.count) == 0);
}

static void try_cancel(void *handle) {
    struct pair pair = {0};
    bool flag = false;
    WRONG(fencelock_cancel_trigger(handle));
    WRONG(fencelock_cancel_signal(handle));
    WRONG(fencelock_cancel_is_triggered(handle, &flag));
    if (handle != NULL) {
        WRONG(fencelock_cancel_free(handle));
        pair = open_pair("cancelled by nothing");
        fencelock_acquire_options options = fresh(FENCELOCK_TRY);
        options.cancel = handle;
        fencelock_hold *hold = NULL;
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, &options, &hold);
        CHECK(hold == NULL);
        close_pair(pair);
    }
}

static void try_the_rest(void *handle) {
    // `every_wrong_handle` has a text that is one, so that texts are left out here.
    fencelock_string string;
    fencelock_error_info error = {.size = sizeof error};
    fencelock_lock_info lock = {.size = sizeof lock};
    fencelock_hold_info hold = {.size = sizeof hold};
    fencelock_waiter_info waiter = {.size = sizeof waiter};
    size_t count = 0;
    WRONG(fencelock_operation_cancel(handle));
    WRONG(fencelock_error_get(handle, &error));
    CHECK(strcmp(fencelock_error_message(handle), "") == 0);
    WRONG(fencelock_names_count(handle, &count));
    WRONG(fencelock_names_get(handle, 0, &string));
    WRONG(fencelock_inspection_lock(handle, &lock));
    WRONG(fencelock_inspection_hold(handle, 0, &hold));
    WRONG(fencelock_inspection_waiter(handle, 0, &waiter));
    if (handle != NULL) {
        WRONG(fencelock_operation_free(handle));
        WRONG(fencelock_error_free(handle));
        WRONG(fencelock_names_free(handle));
        WRONG(fencelock_inspection_free(handle));
    }
}

static void wrong_handles_are_refused(void) {
    every_wrong_handle(try_client);
    every_wrong_handle(try_lock);
    every_wrong_handle(try_rwlock);
    every_wrong_handle(try_semaphore);
    every_wrong_handle(try_hold);
    every_wrong_handle(try_cancel);
    every_wrong_handle(try_the_rest);
    fencelock_string string;
    WRONG(fencelock_text_get(NULL, &string));
    WRONG(fencelock_text_get((fencelock_text *)&string, &string));
}

static void freeing_nothing_does_nothing(void) {
    IS(FENCELOCK_OK, fencelock_client_free(NULL));
    IS(FENCELOCK_OK, fencelock_lock_free(NULL));
    IS(FENCELOCK_OK, fencelock_rwlock_free(NULL));
    IS(FENCELOCK_OK, fencelock_semaphore_free(NULL));
    IS(FENCELOCK_OK, fencelock_hold_free(NULL));
    IS(FENCELOCK_OK, fencelock_cancel_free(NULL));
    IS(FENCELOCK_OK, fencelock_operation_free(NULL));
    IS(FENCELOCK_OK, fencelock_error_free(NULL));
    IS(FENCELOCK_OK, fencelock_text_free(NULL));
    IS(FENCELOCK_OK, fencelock_names_free(NULL));
    IS(FENCELOCK_OK, fencelock_inspection_free(NULL));
}

static void places_for_results_are_needed(void) {
    struct pair pair = open_pair("places");
    uint64_t number = 0;
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, store, FENCELOCK_NTS, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "x", 1, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_rwlock, pair.client, "x", 1, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_semaphore, pair.client, "x", 1, 3, NULL);
    fencelock_rwlock *rwlock = NULL;
    if (fencelock_client_rwlock(pair.client, "places", 6, &rwlock, NULL) == FENCELOCK_OK) {
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_acquire_read, rwlock, NULL, NULL);
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_acquire_write, rwlock, NULL, NULL);
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_reader, rwlock, NULL);
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_rwlock_writer, rwlock, NULL);
        WRONG(fencelock_rwlock_name(rwlock, NULL));
        IS(FENCELOCK_OK, fencelock_rwlock_free(rwlock));
    }
    fencelock_semaphore *semaphore = NULL;
    if (fencelock_client_semaphore(pair.client, "places", 6, 3, &semaphore, NULL) == FENCELOCK_OK) {
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire, semaphore, 1, NULL, NULL);
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_available_permits, semaphore, NULL);
        WRONG(fencelock_semaphore_name(semaphore, NULL));
        WRONG(fencelock_semaphore_permits(semaphore, NULL));
        IS(FENCELOCK_OK, fencelock_semaphore_free(semaphore));
    }
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_id, pair.client, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_metrics, pair.client, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_ping, pair.client, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_inspect, pair.client, "x", 1, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_list, pair.client, NULL, 0, 1, NULL);
    fencelock_names *none = NULL;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_list, pair.client, NULL, 0, 0, &none);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_break, pair.client, "x", 1, 1, NULL, &number);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_break, pair.client, "x", 1, 1, &number, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_attach, pair.client, "x", 1, NULL);
    WRONG(fencelock_client_counters(pair.client, NULL));
    WRONG(fencelock_client_capabilities(pair.client, NULL));
    WRONG(fencelock_client_is_closed(pair.client, NULL));
    WRONG(fencelock_client_is_idle(pair.client, NULL));
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_is_locked, pair.lock, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_entered, pair.lock, NULL, NULL);
    WRONG(fencelock_lock_name(pair.lock, NULL));
    WRONG(fencelock_lock_depth(pair.lock, NULL, NULL));
    WRONG(fencelock_lock_hold_count(pair.lock, NULL, NULL));
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_check, hold, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_ticket, hold, NULL);
    WRONG(fencelock_hold_token(hold, NULL));
    WRONG(fencelock_hold_name(hold, NULL));
    WRONG(fencelock_hold_is_valid(hold, NULL));
    WRONG(fencelock_hold_remaining(hold, NULL));
    WRONG(fencelock_hold_is_reentry(hold, NULL));
    WRONG(fencelock_hold_is_wanted(hold, NULL));
    WRONG(fencelock_hold_previous_abandoned(hold, NULL));
    WRONG(fencelock_hold_mode(hold, NULL));
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_cancel_new, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_on_lost, hold, NULL, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_on_wanted, hold, NULL, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_ping_async, pair.client, NULL, NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire_async, pair.lock, NULL, NULL, NULL,
          NULL, NULL);
    // The hold that was asked for without a place, or a callback, was not acquired, nor this one
    // released.
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_release_async, hold, NULL, NULL, NULL);
    OK(fencelock_hold_release, hold);
    close_pair(pair);
}

static void names_are_looked_at(void) {
    struct pair pair = open_pair("names");
    fencelock_lock *lock = (fencelock_lock *)1;
    char longest[600];
    memset(longest, 'n', sizeof longest);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, NULL, 0, &lock);
    CHECK(lock == NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, NULL, 5, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, NULL, FENCELOCK_NTS,
          &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "", 0, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "a\0b", 3, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "\xff\xfe", 2, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "\xc3", 1, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, longest, 513, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "x", SIZE_MAX - 1, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "x", SIZE_MAX / 2, &lock);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_lock, pair.client, "x", (size_t)1 << 40,
          &lock);
    OK(fencelock_client_lock, pair.client, longest, 512, &lock);
    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    OK(fencelock_client_lock, pair.client, "gr\xc3\xbc\xc3\x9f", FENCELOCK_NTS, &lock);
    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    // A length ends the text, whatever is behind it.
    OK(fencelock_client_lock, pair.client, "abc\xff", 3, &lock);
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(lock, &name));
    CHECK(name.length == 3 && strcmp(name.data, "abc") == 0);
    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    close_pair(pair);
}

static void stores_are_looked_at(void) {
    fencelock_client *client = (fencelock_client *)1;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, NULL, 0, NULL, &client);
    CHECK(client == NULL);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, "carrier-pigeon://roof", FENCELOCK_NTS,
          NULL, &client);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, "", 0, NULL, &client);
    fencelock_connect_options options = FENCELOCK_CONNECT_OPTIONS_INIT;
    options.connect_timeout_ns = 50 * FENCELOCK_MILLISECOND;
    FAILS(FENCELOCK_UNAVAILABLE, fencelock_connect, "redis+unix:///nowhere/at/all", FENCELOCK_NTS,
          &options, &client);
}

static void options_are_looked_at(void) {
    struct pair pair = open_pair("options");
    fencelock_hold *hold = NULL;
    fencelock_acquire_options wrong[12];
    size_t count = 0;
    for (size_t i = 0; i < 12; i++) wrong[i] = fresh(FENCELOCK_TRY);
    wrong[count++].size = 0;
    wrong[count++].size = 8;
    wrong[count++].size = SIZE_MAX;
    wrong[count++].timeout_ns = -2;
    wrong[count++].timeout_ns = INT64_MIN;
    wrong[count++].lease_ns = -1;
    wrong[count++].lease_ns = FENCELOCK_MILLISECOND;
    wrong[count++].max_hold_ns = -1;
    wrong[count++].owner_kind = 99;
    wrong[count++].reserved = 1;
    wrong[count++].owner_kind = FENCELOCK_OWNER_EXPLICIT;
    wrong[count] = local(UINT64_MAX, FENCELOCK_TRY);
    for (size_t i = 0; i <= count; i++)
        FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, &wrong[i], &hold);
    fencelock_acquire_options owner = explicitly("control\n", FENCELOCK_TRY);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, &owner, &hold);
    owner = explicitly("\xff", FENCELOCK_TRY);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, &owner, &hold);
    owner.owner_length = SIZE_MAX - 7;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, &owner, &hold);

    fencelock_client *client = NULL;
    fencelock_connect_options connect = FENCELOCK_CONNECT_OPTIONS_INIT;
    connect.lease_ns = -5;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, store, FENCELOCK_NTS, &connect, &client);
    connect.lease_ns = 1;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, store, FENCELOCK_NTS, &connect, &client);
    connect.lease_ns = 0;
    connect.local_run_grants = -2;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, store, FENCELOCK_NTS, &connect, &client);
    connect.local_run_grants = INT64_MAX;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, store, FENCELOCK_NTS, &connect, &client);
    connect.local_run_grants = 0;
    connect.label = "\xff";
    connect.label_length = FENCELOCK_NTS;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_connect, store, FENCELOCK_NTS, &connect, &client);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_close, pair.client, -2);
    close_pair(pair);
}

// As compiled with an older header, and with a newer one.
static void structures_may_be_shorter_or_longer(void) {
    struct pair pair = open_pair("sizes");
    struct {
        size_t size;
        int64_t timeout_ns;
        char after[64];
    } shorter;
    memset(&shorter, 0xee, sizeof shorter);
    shorter.size = offsetof(fencelock_acquire_options, lease_ns);
    shorter.timeout_ns = FENCELOCK_TRY;
    fencelock_hold *hold = NULL;
    OK(fencelock_lock_acquire, pair.lock, (fencelock_acquire_options *)(void *)&shorter, &hold);
    OK(fencelock_hold_release, hold);

    struct {
        fencelock_acquire_options known;
        uint64_t unknown;
    } longer = {fresh(FENCELOCK_TRY), 0};
    longer.known.size = sizeof longer;
    OK(fencelock_lock_acquire, pair.lock, &longer.known, &hold);
    OK(fencelock_hold_release, hold);
    longer.unknown = 1;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire, pair.lock, &longer.known, &hold);

    fencelock_capabilities whole = {.size = sizeof whole};
    IS(FENCELOCK_OK, fencelock_client_capabilities(pair.client, &whole));
    struct {
        fencelock_capabilities known;
        unsigned char unknown[16];
    } result;
    memset(&result, 0xee, sizeof result);
    result.known.size = sizeof result;
    IS(FENCELOCK_OK, fencelock_client_capabilities(pair.client, &result.known));
    CHECK(result.known.size == sizeof result && result.known.leases == whole.leases);
    for (size_t i = 0; i < sizeof result.unknown; i++) CHECK(result.unknown[i] == 0);
    memset(&result, 0xee, sizeof result);
    result.known.size = offsetof(fencelock_capabilities, processes);
    IS(FENCELOCK_OK, fencelock_client_capabilities(pair.client, &result.known));
    CHECK(result.known.store.data == whole.store.data);
    CHECK(*(unsigned char *)&result.known.processes == 0xee);
    result.known.size = 3;
    WRONG(fencelock_client_capabilities(pair.client, &result.known));
    close_pair(pair);
}

const struct test misuse_tests[] = {
    {"wrong_handles_are_refused", wrong_handles_are_refused},
    {"freeing_nothing_does_nothing", freeing_nothing_does_nothing},
    {"places_for_results_are_needed", places_for_results_are_needed},
    {"names_are_looked_at", names_are_looked_at},
    {"stores_are_looked_at", stores_are_looked_at},
    {"options_are_looked_at", options_are_looked_at},
    {"structures_may_be_shorter_or_longer", structures_may_be_shorter_or_longer},
    {NULL, NULL},
};
