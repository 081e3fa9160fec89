// Calls that do not block.
#include "check.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

static void a_client_connects_and_closes(void) {
    struct mail mail = {0};
    OK(fencelock_connect_async, store, FENCELOCK_NTS, NULL, post, &mail);
    fencelock_completion completion = collect(&mail);
    CHECK(completion.status == FENCELOCK_OK && completion.error == NULL);
    fencelock_client *client = completion.client;
    OK(fencelock_client_ping_async, client, post, &mail);
    CHECK(collect(&mail).number > 0);
    OK(fencelock_client_close_async, client, 0, post, &mail);
    CHECK(collect(&mail).status == FENCELOCK_OK);
    OK(fencelock_client_close_async, client, 0, post, &mail);
    CHECK(collect(&mail).status == FENCELOCK_OK);
    IS(FENCELOCK_OK, fencelock_client_free(client));
    OK(fencelock_connect_async, "carrier-pigeon://roof", FENCELOCK_NTS, NULL, post, &mail);
    completion = collect(&mail);
    CHECK(completion.status == FENCELOCK_INVALID_ARGUMENT && completion.client == NULL);
    check_error(__FILE__, __LINE__, completion.error, FENCELOCK_INVALID_ARGUMENT);
}

static void a_wait_ends_with_the_release(void) {
    struct pair pair = open_pair("async");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    struct mail mail = {0};
    fencelock_acquire_options options = fresh(BOUND);
    fencelock_operation *operation = NULL;
    OK(fencelock_lock_acquire_async, pair.lock, &options, NULL, post, &mail, &operation);
    CHECK(operation != NULL);
    struct mail released = {0};
    OK(fencelock_hold_release_async, hold, NULL, post, &released);
    FAILS(FENCELOCK_NOT_HELD, fencelock_hold_release_async, hold, NULL, post, &released);
    fencelock_completion completion = collect(&mail);
    CHECK(completion.status == FENCELOCK_OK);
    CHECK(collect(&released).status == FENCELOCK_OK);
    // Too late to cancel.
    IS(FENCELOCK_OK, fencelock_operation_cancel(operation));
    IS(FENCELOCK_OK, fencelock_operation_free(operation));
    bool valid = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(completion.hold, &valid));
    CHECK(valid);
    OK(fencelock_hold_extend_async, completion.hold, 60 * FENCELOCK_SECOND, NULL, post, &mail);
    CHECK(collect(&mail).status == FENCELOCK_OK);
    OK(fencelock_hold_release, completion.hold);
    close_pair(pair);
}

static void the_calling_thread_may_wait_for_a_while(void) {
    struct pair pair = open_pair("for a while");
    struct mail mail = {0};
    fencelock_acquire_options options = fresh(BOUND);
    options.block_ns = BOUND;
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_operation *operation = (fencelock_operation *)1;
    OK(fencelock_lock_acquire_async, pair.lock, &options, &now, post, &mail, &operation);
    CHECK(now.ended && now.status == FENCELOCK_OK && operation == NULL);
    fencelock_hold *hold = now.hold;
    // What takes longer goes on by itself.
    options.block_ns = FENCELOCK_MILLISECOND;
    OK(fencelock_lock_acquire_async, pair.lock, &options, &now, post, &mail, &operation);
    CHECK(!now.ended && operation != NULL);
    OK(fencelock_hold_release, hold);
    fencelock_completion completion = collect(&mail);
    CHECK(completion.status == FENCELOCK_OK);
    IS(FENCELOCK_OK, fencelock_operation_free(operation));
    OK(fencelock_hold_release, completion.hold);
    options.block_ns = -1;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_lock_acquire_async, pair.lock, &options, &now, post,
          &mail, &operation);
    close_pair(pair);
}

static void what_ends_at_once_is_given_at_once(void) {
    struct pair pair = open_pair("at once");
    fencelock_hold *hold = acquire(pair.lock, local(1, FENCELOCK_TRY));
    struct mail mail = {0};
    fencelock_acquire_options again = local(1, FENCELOCK_TRY);
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_operation *operation = (fencelock_operation *)1;
    OK(fencelock_lock_acquire_async, pair.lock, &again, &now, post, &mail, &operation);
    CHECK(now.ended && now.status == FENCELOCK_OK && now.hold != NULL && operation == NULL);
    CHECK(token_of(now.hold) == token_of(hold));
    fencelock_completion left = FENCELOCK_COMPLETION_INIT;
    OK(fencelock_hold_release_async, now.hold, &left, post, &mail);
    CHECK(left.ended && left.status == FENCELOCK_OK);
    // A failure that is known at once, too.
    again = local(2, FENCELOCK_TRY);
    again.lease_ns = FENCELOCK_MILLISECOND;
    OK(fencelock_lock_acquire_async, pair.lock, &again, &now, post, &mail, NULL);
    CHECK(now.ended && now.status == FENCELOCK_INVALID_ARGUMENT && now.hold == NULL);
    check_error(__FILE__, __LINE__, now.error, FENCELOCK_INVALID_ARGUMENT);
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(atomic_load(&mail.count) == 0);
    // Asked for by a callback, it comes by the callback.
    again = local(1, FENCELOCK_TRY);
    OK(fencelock_lock_acquire_async, pair.lock, &again, NULL, post, &mail, NULL);
    OK(fencelock_hold_release, collect(&mail).hold);
    // A structure without its size is noticed before anything begins.
    now.size = 0;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_release_async, hold, &now, post, &mail);
    OK(fencelock_hold_release, hold);
    close_pair(pair);
}

static void operators_need_not_block(void) {
    struct pair pair = open_pair("operators");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    fencelock_hold *hold = acquire(pair.lock, explicitly("me", FENCELOCK_TRY));
    struct mail mail = {0};
    OK(fencelock_lock_is_locked_async, pair.lock, post, &mail);
    CHECK(collect(&mail).number == 1);
    OK(fencelock_client_inspect_async, pair.client, name.data, name.length, post, &mail);
    fencelock_inspection *inspection = collect(&mail).inspection;
    fencelock_lock_info info = {.size = sizeof info};
    IS(FENCELOCK_OK, fencelock_inspection_lock(inspection, &info));
    CHECK(info.hold_count == 1);
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    OK(fencelock_client_inspect_async, pair.client, "never used", FENCELOCK_NTS, post, &mail);
    fencelock_completion nothing = collect(&mail);
    CHECK(nothing.status == FENCELOCK_OK && nothing.inspection == NULL);
    OK(fencelock_client_list_async, pair.client, name.data, name.length, 10, post, &mail);
    fencelock_names *names = collect(&mail).names;
    size_t count = 0;
    IS(FENCELOCK_OK, fencelock_names_count(names, &count));
    CHECK(count == 1);
    IS(FENCELOCK_OK, fencelock_names_free(names));
    fencelock_text *ticket = NULL;
    OK(fencelock_hold_ticket, hold, &ticket);
    fencelock_string text;
    IS(FENCELOCK_OK, fencelock_text_get(ticket, &text));
    OK(fencelock_client_attach_async, pair.client, text.data, text.length, NULL, post, &mail, NULL);
    fencelock_hold *joined = collect(&mail).hold;
    CHECK(token_of(joined) == token_of(hold));
    IS(FENCELOCK_OK, fencelock_text_free(ticket));
    uint64_t seen = token_of(hold);
    OK(fencelock_client_break_async, pair.client, name.data, name.length, seen - 2000, post, &mail);
    fencelock_completion kept = collect(&mail);
    CHECK(kept.number == 0 && kept.changed_hands != 0 && kept.changed_hands <= seen);
    OK(fencelock_client_break_async, pair.client, name.data, name.length, seen, post, &mail);
    // Where the store knows no owners, both holds are one to it.
    CHECK(collect(&mail).number == (capabilities_of(pair.client).owners ? 2 : 1));
    IS(FENCELOCK_OK, fencelock_hold_free(joined));
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    close_pair(pair);
}

struct on_thread {
    atomic_int done;
    char name[17];
    fencelock_status waited;
    pthread_t thread;
};

static void look_around(const fencelock_completion *completion, void *user_data) {
    struct on_thread *seen = user_data;
    CHECK(completion->status == FENCELOCK_OK);
    seen->thread = pthread_self();
#ifdef __linux__
    prctl(PR_GET_NAME, seen->name);
#endif
    seen->waited = fencelock_callbacks_wait(0, NULL);
    atomic_store(&seen->done, 1);
}

static void callbacks_come_on_one_thread_with_a_name(void) {
    struct pair pair = open_pair("thread");
    struct on_thread first = {0}, second = {0};
    OK(fencelock_client_ping_async, pair.client, look_around, &first);
    OK(fencelock_client_ping_async, pair.client, look_around, &second);
    UNTIL(atomic_load(&first.done) && atomic_load(&second.done));
    CHECK(pthread_equal(first.thread, second.thread));
#ifdef __linux__
    // The kernel keeps 15 bytes of a thread's name.
    CHECK(strncmp(first.name, "fencelock-callbacks", 15) == 0);
#endif
    CHECK(first.waited == FENCELOCK_INVALID_ARGUMENT);
    close_pair(pair);
}

#define WAITERS 200

static atomic_int chain_done;
static uint64_t chain_highest;

static void pass_on(const fencelock_completion *completion, void *unused) {
    (void)unused;
    CHECK(completion->status == FENCELOCK_OK);
    uint64_t token = token_of(completion->hold);
    CHECK(token > chain_highest);
    chain_highest = token;
    // From the callback: it does not block.
    IS(FENCELOCK_OK, fencelock_hold_free(completion->hold));
    atomic_fetch_add(&chain_done, 1);
}

static void many_waiters_pass_the_lock_on(void) {
    struct pair pair = open_pair("chain");
    atomic_store(&chain_done, 0);
    chain_highest = 0;
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    fencelock_acquire_options options = fresh(FENCELOCK_FOREVER);
    for (int i = 0; i < WAITERS; i++)
        OK(fencelock_lock_acquire_async, pair.lock, &options, NULL, pass_on, NULL, NULL);
    CHECK(atomic_load(&chain_done) == 0);
    OK(fencelock_hold_release, hold);
    UNTIL(atomic_load(&chain_done) == WAITERS);
    close_pair(pair);
}

const struct test async_tests[] = {
    {"a_client_connects_and_closes", a_client_connects_and_closes},
    {"a_wait_ends_with_the_release", a_wait_ends_with_the_release},
    {"the_calling_thread_may_wait_for_a_while", the_calling_thread_may_wait_for_a_while},
    {"what_ends_at_once_is_given_at_once", what_ends_at_once_is_given_at_once},
    {"operators_need_not_block", operators_need_not_block},
    {"callbacks_come_on_one_thread_with_a_name", callbacks_come_on_one_thread_with_a_name},
    {"many_waiters_pass_the_lock_on", many_waiters_pass_the_lock_on},
    {NULL, NULL},
};
