// What the blocking calls do.
#include "check.h"

static void the_library_says_what_it_is(void) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", FENCELOCK_VERSION_MAJOR, FENCELOCK_VERSION_MINOR,
             FENCELOCK_VERSION_PATCH);
    CHECK(strcmp(fencelock_version(), version) == 0);
    CHECK(fencelock_abi_version() == FENCELOCK_ABI_VERSION);
    CHECK(strcmp(fencelock_status_name(FENCELOCK_OK), "ok") == 0);
    CHECK(strcmp(fencelock_status_name(FENCELOCK_LOST), "lost") == 0);
    CHECK(strcmp(fencelock_status_name(FENCELOCK_INTERNAL), "internal") == 0);
    CHECK(strcmp(fencelock_status_name(-7), "unknown") == 0);
}

static void a_lock_is_held_and_released(void) {
    struct pair pair = open_pair("held");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    CHECK(strncmp(name.data, "held/", 5) == 0 && strlen(name.data) == name.length);

    fencelock_hold *hold = NULL;
    OK(fencelock_lock_acquire, pair.lock, NULL, &hold);
    uint64_t token = token_of(hold), checked = 0;
    OK(fencelock_hold_check, hold, &checked);
    CHECK(checked == token);
    bool flag = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &flag));
    CHECK(flag);
    int64_t remaining = 0;
    IS(FENCELOCK_OK, fencelock_hold_remaining(hold, &remaining));
    CHECK(remaining > 0 && remaining <= 30 * FENCELOCK_SECOND);
    fencelock_string of_hold;
    IS(FENCELOCK_OK, fencelock_hold_name(hold, &of_hold));
    CHECK(strcmp(of_hold.data, name.data) == 0 && of_hold.length == name.length);
    fencelock_abandoned previous = -1;
    IS(FENCELOCK_OK, fencelock_hold_previous_abandoned(hold, &previous));
    CHECK(previous == FENCELOCK_ABANDONED_UNKNOWN);
    IS(FENCELOCK_OK, fencelock_hold_is_reentry(hold, &flag));
    CHECK(!flag);
    IS(FENCELOCK_OK, fencelock_hold_is_wanted(hold, &flag));
    CHECK(!flag);
    OK(fencelock_lock_is_locked, pair.lock, &flag);
    CHECK(flag);

    OK(fencelock_hold_release, hold);
    FAILS(FENCELOCK_NOT_HELD, fencelock_hold_release, hold);
    OK(fencelock_lock_is_locked, pair.lock, &flag);
    CHECK(!flag);
    hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    CHECK(token_of(hold) > token);
    IS(FENCELOCK_OK, fencelock_hold_previous_abandoned(hold, &previous));
    CHECK(previous == FENCELOCK_ABANDONED_NO);
    OK(fencelock_hold_release, hold);
    close_pair(pair);
}

static void owners_re_enter_and_exclude_each_other(void) {
    struct pair pair = open_pair("owners");
    fencelock_hold *first = acquire(pair.lock, local(1, FENCELOCK_TRY));
    fencelock_hold *again = acquire(pair.lock, local(1, FENCELOCK_TRY));
    bool reentry = false;
    IS(FENCELOCK_OK, fencelock_hold_is_reentry(again, &reentry));
    CHECK(reentry && token_of(first) == token_of(again));
    fencelock_acquire_options owner = local(1, 0);
    uint64_t count = 0;
    IS(FENCELOCK_OK, fencelock_lock_hold_count(pair.lock, &owner, &count));
    CHECK(count == 2);
    IS(FENCELOCK_OK, fencelock_lock_hold_count(pair.lock, NULL, &count));
    CHECK(count == 0);

    fencelock_hold *none = (fencelock_hold *)1;
    fencelock_acquire_options other = local(2, FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_acquire, pair.lock, &other, &none);
    CHECK(none == NULL);
    other.timeout_ns = 20 * FENCELOCK_MILLISECOND;
    FAILS(FENCELOCK_TIMED_OUT, fencelock_lock_acquire, pair.lock, &other, &none);
    fencelock_acquire_options thread = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    thread.timeout_ns = FENCELOCK_TRY;
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_acquire, pair.lock, &thread, &none);
    // Without a place for the error, the status is the same.
    IS(FENCELOCK_CONTENDED, fencelock_lock_acquire(pair.lock, &thread, &none, NULL));

    OK(fencelock_hold_release, first);
    FAILS(FENCELOCK_TIMED_OUT, fencelock_lock_acquire, pair.lock, &other, &none);
    OK(fencelock_hold_release, again);
    OK(fencelock_hold_release, acquire(pair.lock, other));
    close_pair(pair);
}

static void a_ticket_joins_an_explicit_owner_elsewhere(void) {
    struct pair pair = open_pair("ticket");
    fencelock_client *other = client_of_store();
    fencelock_hold *hold = acquire(pair.lock, explicitly("trace-8f3a", FENCELOCK_TRY));
    fencelock_text *ticket = NULL;
    OK(fencelock_hold_ticket, hold, &ticket);
    fencelock_string text;
    IS(FENCELOCK_OK, fencelock_text_get(ticket, &text));
    CHECK(strncmp(text.data, "fl1.", 4) == 0);
    fencelock_hold *joined = NULL;
    if (!capabilities_of(other).owners) {
        FAILS(FENCELOCK_UNSUPPORTED, fencelock_client_attach, other, text.data, text.length, &joined);
        OK(fencelock_hold_release, hold);
        IS(FENCELOCK_OK, fencelock_text_free(ticket));
        OK(fencelock_client_close, other, 0);
        IS(FENCELOCK_OK, fencelock_client_free(other));
        close_pair(pair);
        return;
    }
    OK(fencelock_client_attach, other, text.data, text.length, &joined);
    CHECK(token_of(joined) == token_of(hold));
    OK(fencelock_hold_release, hold);
    bool valid = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(joined, &valid));
    CHECK(valid);
    OK(fencelock_hold_release, joined);
    FAILS(FENCELOCK_NOT_HELD, fencelock_client_attach, other, text.data, text.length, &joined);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_attach, other, "no ticket", FENCELOCK_NTS,
          &joined);
    hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    fencelock_text *none = NULL;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_ticket, hold, &none);
    OK(fencelock_hold_release, hold);
    IS(FENCELOCK_OK, fencelock_text_free(ticket));
    OK(fencelock_client_close, other, 0);
    IS(FENCELOCK_OK, fencelock_client_free(other));
    close_pair(pair);
}

struct news {
    atomic_int lost, wanted, destroyed;
    atomic_int reason;
};

static void lost(fencelock_loss reason, void *news) {
    atomic_store(&((struct news *)news)->reason, reason);
    atomic_fetch_add(&((struct news *)news)->lost, 1);
}

static void wanted(void *news) { atomic_fetch_add(&((struct news *)news)->wanted, 1); }

static void destroyed(void *news) { atomic_fetch_add(&((struct news *)news)->destroyed, 1); }

static void a_broken_lock_is_told_to_its_holder(void) {
    struct pair pair = open_pair("broken");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    struct news news = {0};
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    OK(fencelock_hold_on_lost, hold, lost, &news, destroyed);
    fencelock_client *admin = client_of_store();
    uint64_t ended = 0, seen = token_of(hold), later = 0;
    OK(fencelock_client_break, admin, name.data, name.length, seen - 2000, &ended, &later);
    CHECK(ended == 0 && later != 0 && later <= seen);
    OK(fencelock_client_break, admin, name.data, name.length, seen, &ended, &later);
    CHECK(ended == 1 && later == 0);
    UNTIL(atomic_load(&news.lost) == 1);
    int reason = atomic_load(&news.reason);
    CHECK(reason == FENCELOCK_LOSS_BROKEN || reason == FENCELOCK_LOSS_GONE);
    UNTIL(atomic_load(&news.destroyed) == 1);
    bool valid = true;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &valid));
    CHECK(!valid);
    uint64_t token = 1;
    FAILS(FENCELOCK_LOST, fencelock_hold_check, hold, &token);
    CHECK(token == 0);
    // Told again, and at once, to whoever asks now.
    OK(fencelock_hold_on_lost, hold, lost, &news, destroyed);
    UNTIL(atomic_load(&news.lost) == 2 && atomic_load(&news.destroyed) == 2);
    FAILS(FENCELOCK_LOST, fencelock_hold_release, hold);
    OK(fencelock_client_break, admin, name.data, name.length, seen, &ended, &later);
    CHECK(ended == 0 && later == 0);
    OK(fencelock_client_close, admin, 0);
    IS(FENCELOCK_OK, fencelock_client_free(admin));
    close_pair(pair);
}

static void user_data_of_a_hold_that_ended_well_is_destroyed(void) {
    struct pair pair = open_pair("destroyed");
    struct news news = {0};
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    OK(fencelock_hold_on_lost, hold, lost, &news, destroyed);
    OK(fencelock_hold_on_wanted, hold, wanted, &news, destroyed);
    OK(fencelock_hold_on_lost, hold, lost, NULL, NULL);
    OK(fencelock_hold_release, hold);
    UNTIL(atomic_load(&news.destroyed) == 2);
    OK(fencelock_callbacks_wait, BOUND);
    CHECK(atomic_load(&news.lost) == 0 && atomic_load(&news.wanted) == 0);
    close_pair(pair);
}

static void a_hold_that_another_client_waits_for_is_wanted(void) {
    struct pair pair = open_pair("wanted");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    struct news news = {0};
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    OK(fencelock_hold_on_wanted, hold, wanted, &news, destroyed);
    fencelock_client *other = client_of_store();
    fencelock_lock *theirs = NULL;
    OK(fencelock_client_lock, other, name.data, name.length, &theirs);
    struct mail mail = {0};
    fencelock_acquire_options options = fresh(BOUND);
    OK(fencelock_lock_acquire_async, theirs, &options, NULL, post, &mail, NULL);
    // A store that cannot push tells it with the next renewal.
    UNTIL(atomic_load(&news.wanted) == 1);
    UNTIL(atomic_load(&news.destroyed) == 1);
    bool flag = false;
    IS(FENCELOCK_OK, fencelock_hold_is_wanted(hold, &flag));
    CHECK(flag);
    OK(fencelock_hold_release, hold);
    fencelock_completion granted = collect(&mail);
    CHECK(granted.status == FENCELOCK_OK && granted.hold != NULL);
    OK(fencelock_hold_release, granted.hold);
    IS(FENCELOCK_OK, fencelock_lock_free(theirs));
    OK(fencelock_client_close, other, 0);
    IS(FENCELOCK_OK, fencelock_client_free(other));
    close_pair(pair);
}

static void leases_end_and_are_extended(void) {
    struct pair pair = open_pair("leases");
    fencelock_acquire_options options = fresh(FENCELOCK_TRY);
    options.lease_ns = 2 * FENCELOCK_SECOND;
    fencelock_hold *hold = acquire(pair.lock, options);
    int64_t remaining = 0;
    IS(FENCELOCK_OK, fencelock_hold_remaining(hold, &remaining));
    CHECK(remaining <= 2 * FENCELOCK_SECOND);
    OK(fencelock_hold_extend, hold, 60 * FENCELOCK_SECOND);
    IS(FENCELOCK_OK, fencelock_hold_remaining(hold, &remaining));
    // Never beyond the session, where that is the lease.
    CHECK(remaining > (capabilities_of(pair.client).leases ? 30 : 15) * FENCELOCK_SECOND);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_extend, hold, FENCELOCK_MILLISECOND);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_extend, hold, -1);
    OK(fencelock_hold_release, hold);

    struct news news = {0};
    options.lease_ns = 100 * FENCELOCK_MILLISECOND;
    hold = acquire(pair.lock, options);
    OK(fencelock_hold_on_lost, hold, lost, &news, NULL);
    UNTIL(atomic_load(&news.lost) == 1);
    CHECK(atomic_load(&news.reason) == FENCELOCK_LOSS_ENDED);
    FAILS(FENCELOCK_LOST, fencelock_hold_release, hold);

    options.lease_ns = 0;
    options.max_hold_ns = 150 * FENCELOCK_MILLISECOND;
    hold = acquire(pair.lock, fresh(FENCELOCK_FOREVER));
    OK(fencelock_hold_release, hold);
    hold = acquire(pair.lock, options);
    OK(fencelock_hold_on_lost, hold, lost, &news, NULL);
    UNTIL(atomic_load(&news.lost) == 2);
    IS(FENCELOCK_OK, fencelock_hold_remaining(hold, &remaining));
    CHECK(remaining == 0);
    IS(FENCELOCK_OK, fencelock_hold_free(hold));
    close_pair(pair);
}

static void a_hold_that_is_only_freed_is_released(void) {
    struct pair pair = open_pair("freed");
    IS(FENCELOCK_OK, fencelock_hold_free(acquire(pair.lock, fresh(FENCELOCK_TRY))));
    fencelock_hold *next = acquire(pair.lock, fresh(BOUND));
    OK(fencelock_hold_release, next);
    close_pair(pair);
}

static void the_store_can_be_asked(void) {
    struct pair pair = open_pair("asked");
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    int64_t now = 0;
    OK(fencelock_client_ping, pair.client, &now);
    CHECK(now > 0);

    fencelock_inspection *inspection = (fencelock_inspection *)1;
    OK(fencelock_client_inspect, pair.client, "asked/never used", FENCELOCK_NTS, &inspection);
    CHECK(inspection == NULL);
    fencelock_hold *hold = acquire(pair.lock, explicitly("me", FENCELOCK_TRY));
    struct mail mail = {0};
    fencelock_acquire_options waiting = explicitly("you", BOUND);
    fencelock_operation *operation = NULL;
    OK(fencelock_lock_acquire_async, pair.lock, &waiting, NULL, post, &mail, &operation);
    fencelock_lock_info lock = {.size = sizeof lock};
    for (;;) {
        OK(fencelock_client_inspect, pair.client, name.data, name.length, &inspection);
        IS(FENCELOCK_OK, fencelock_inspection_lock(inspection, &lock));
        if (lock.waiter_count == 1) break;
        IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    }
    // Where owners are the client's own affair, the store does not know them.
    bool owners = capabilities_of(pair.client).owners;
    CHECK(strcmp(lock.name.data, name.data) == 0);
    CHECK(owners ? strcmp(lock.owner.data, "me") == 0 : lock.owner.length == 0);
    CHECK(lock.token == token_of(hold) && lock.last_token >= lock.token && lock.hold_count == 1);
    fencelock_hold_info held = {.size = sizeof held};
    IS(FENCELOCK_OK, fencelock_inspection_hold(inspection, 0, &held));
    fencelock_text *id = NULL;
    OK(fencelock_client_id, pair.client, &id);
    fencelock_string text;
    IS(FENCELOCK_OK, fencelock_text_get(id, &text));
    CHECK(text.length == 16 && strcmp(held.client.data, text.data) == 0);
    CHECK(held.id.length > 0 && held.label.length == 0 && held.expires_in_ns > 0);
    CHECK(held.lease_ns == 30 * FENCELOCK_SECOND && !held.claim);
    // Whatever the store keeps, a client knows its own; each call of an explicit owner has an entry.
    CHECK(held.local_waiters == 0 && lock.waiting == 1);
    fencelock_waiter_info waiter = {.size = sizeof waiter};
    IS(FENCELOCK_OK, fencelock_inspection_waiter(inspection, 0, &waiter));
    CHECK(owners ? strcmp(waiter.owner.data, "you") == 0 : waiter.owner.length == 0);
    CHECK(waiter.heard_ago_ns >= 0 && !waiter.silent && waiter.local_waiters == 0);
    IS(FENCELOCK_INVALID_ARGUMENT, fencelock_inspection_hold(inspection, 1, &held));
    IS(FENCELOCK_INVALID_ARGUMENT, fencelock_inspection_waiter(inspection, SIZE_MAX, &waiter));
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    IS(FENCELOCK_OK, fencelock_operation_cancel(operation));
    IS(FENCELOCK_OK, fencelock_operation_free(operation));
    fencelock_completion completion = collect(&mail);
    CHECK(completion.status == FENCELOCK_CANCELLED && completion.hold == NULL);
    check_error(__FILE__, __LINE__, completion.error, FENCELOCK_CANCELLED);

    fencelock_names *names = NULL;
    OK(fencelock_client_list, pair.client, name.data, name.length, 10, &names);
    size_t count = 0;
    IS(FENCELOCK_OK, fencelock_names_count(names, &count));
    CHECK(count == 1);
    fencelock_string listed;
    IS(FENCELOCK_OK, fencelock_names_get(names, 0, &listed));
    CHECK(strcmp(listed.data, name.data) == 0);
    IS(FENCELOCK_INVALID_ARGUMENT, fencelock_names_get(names, 1, &listed));
    CHECK(listed.data == NULL);
    IS(FENCELOCK_OK, fencelock_names_free(names));
    OK(fencelock_client_list, pair.client, NULL, 0, 1000, &names);
    IS(FENCELOCK_OK, fencelock_names_free(names));
    OK(fencelock_hold_release, hold);
    IS(FENCELOCK_OK, fencelock_text_free(id));
    close_pair(pair);
}

static void who_waits_within_a_client_is_counted(void) {
    struct pair pair = open_pair("crowded");
    fencelock_hold *hold = acquire(pair.lock, fresh(FENCELOCK_TRY));
    struct mail mails[2] = {{0}};
    fencelock_operation *operations[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        fencelock_acquire_options waiting = fresh(BOUND);
        OK(fencelock_lock_acquire_async, pair.lock, &waiting, NULL, post, &mails[i], &operations[i]);
    }
    fencelock_inspection *inspection = NULL;
    fencelock_string name;
    IS(FENCELOCK_OK, fencelock_lock_name(pair.lock, &name));
    OK(fencelock_client_inspect, pair.client, name.data, name.length, &inspection);
    fencelock_lock_info lock = {.size = sizeof lock};
    IS(FENCELOCK_OK, fencelock_inspection_lock(inspection, &lock));
    fencelock_hold_info held = {.size = sizeof held};
    IS(FENCELOCK_OK, fencelock_inspection_hold(inspection, 0, &held));
    CHECK(lock.waiter_count == 0 && lock.waiting == 2 && held.local_waiters == 2);
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    for (int i = 0; i < 2; i++) {
        IS(FENCELOCK_OK, fencelock_operation_cancel(operations[i]));
        IS(FENCELOCK_OK, fencelock_operation_free(operations[i]));
        fencelock_completion completion = collect(&mails[i]);
        check_error(__FILE__, __LINE__, completion.error, FENCELOCK_CANCELLED);
    }
    OK(fencelock_hold_release, hold);
    close_pair(pair);
}

static void clients_are_counted_and_described(void) {
    fencelock_connect_options options = FENCELOCK_CONNECT_OPTIONS_INIT;
    options.lease_ns = 10 * FENCELOCK_SECOND;
    options.claim_ns = FENCELOCK_SECOND;
    options.request_timeout_ns = 5 * FENCELOCK_SECOND;
    options.connect_timeout_ns = 20 * FENCELOCK_SECOND;
    options.local_run_grants = -1;
    options.local_run_time_ns = FENCELOCK_MILLISECOND;
    options.max_waiters = 1;
    options.label = "the label, and more";
    options.label_length = 9;
    fencelock_client *client = NULL;
    OK(fencelock_connect, store, strlen(store), &options, &client);
    fencelock_lock *lock = NULL;
    const char *name = name_of("counted");
    OK(fencelock_client_lock, client, name, strlen(name), &lock);
    fencelock_hold *hold = acquire(lock, fresh(FENCELOCK_TRY));
    int64_t remaining = 0;
    IS(FENCELOCK_OK, fencelock_hold_remaining(hold, &remaining));
    CHECK(remaining <= 10 * FENCELOCK_SECOND);
    fencelock_inspection *inspection = NULL;
    OK(fencelock_client_inspect, client, name, FENCELOCK_NTS, &inspection);
    fencelock_hold_info held = {.size = sizeof held};
    IS(FENCELOCK_OK, fencelock_inspection_hold(inspection, 0, &held));
    CHECK(strcmp(held.label.data, "the label") == 0);
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    OK(fencelock_hold_release, hold);

    fencelock_counters counters = {.size = sizeof counters};
    IS(FENCELOCK_OK, fencelock_client_counters(client, &counters));
    CHECK(counters.grants == 1 && counters.losses == 0 && counters.waiting == 0);
    fencelock_text *metrics = NULL;
    OK(fencelock_client_metrics, client, &metrics);
    fencelock_string text;
    IS(FENCELOCK_OK, fencelock_text_get(metrics, &text));
    CHECK(strstr(text.data, "fencelock_hold_seconds_count 1") != NULL);
    IS(FENCELOCK_OK, fencelock_text_free(metrics));
    fencelock_capabilities known = {.size = sizeof known};
    IS(FENCELOCK_OK, fencelock_client_capabilities(client, &known));
    bool session = strncmp(store, "zk:", 3) == 0;
    const char *kind = session ? "zookeeper" : store;
    CHECK(strncmp(kind, known.store.data, known.store.length) == 0);
    CHECK(known.owners == !session && known.leases == !session);
    CHECK(known.paths == session);
    fencelock_lock *no_path = NULL;
    fencelock_status expected = known.paths ? FENCELOCK_INVALID_ARGUMENT : FENCELOCK_OK;
    IS(expected, fencelock_client_lock(client, "no//path", FENCELOCK_NTS, &no_path, NULL));
    IS(FENCELOCK_OK, fencelock_lock_free(no_path));
    bool closed = true;
    IS(FENCELOCK_OK, fencelock_client_is_closed(client, &closed));
    CHECK(!closed);
    bool idle = false;
    IS(FENCELOCK_OK, fencelock_client_is_idle(client, &idle));
    CHECK(idle);
    OK(fencelock_client_close, client, 0);
    IS(FENCELOCK_OK, fencelock_client_is_closed(client, &closed));
    CHECK(closed);
    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    IS(FENCELOCK_OK, fencelock_client_free(client));
}

#define THREADS 8
#define TURNS 40

static struct {
    struct pair pair;
    atomic_int inside;
    uint64_t highest;
} crowd;

static void *one_of_the_crowd(void *unused) {
    for (int turn = 0; turn < TURNS; turn++) {
        fencelock_hold *hold = NULL;
        OK(fencelock_lock_acquire, crowd.pair.lock, NULL, &hold);
        CHECK(atomic_fetch_add(&crowd.inside, 1) == 0);
        uint64_t token = token_of(hold);
        CHECK(token > crowd.highest);
        crowd.highest = token;
        CHECK(atomic_fetch_sub(&crowd.inside, 1) == 1);
        OK(fencelock_hold_release, hold);
    }
    return unused;
}

static void threads_exclude_each_other_and_tokens_rise(void) {
    crowd.pair = open_pair("crowd");
    crowd.highest = 0;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, one_of_the_crowd, NULL) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    close_pair(crowd.pair);
}

const struct test api_tests[] = {
    {"the_library_says_what_it_is", the_library_says_what_it_is},
    {"a_lock_is_held_and_released", a_lock_is_held_and_released},
    {"owners_re_enter_and_exclude_each_other", owners_re_enter_and_exclude_each_other},
    {"a_ticket_joins_an_explicit_owner_elsewhere", a_ticket_joins_an_explicit_owner_elsewhere},
    {"a_broken_lock_is_told_to_its_holder", a_broken_lock_is_told_to_its_holder},
    {"user_data_of_a_hold_that_ended_well_is_destroyed",
     user_data_of_a_hold_that_ended_well_is_destroyed},
    {"a_hold_that_another_client_waits_for_is_wanted",
     a_hold_that_another_client_waits_for_is_wanted},
    {"leases_end_and_are_extended", leases_end_and_are_extended},
    {"a_hold_that_is_only_freed_is_released", a_hold_that_is_only_freed_is_released},
    {"the_store_can_be_asked", the_store_can_be_asked},
    {"who_waits_within_a_client_is_counted", who_waits_within_a_client_is_counted},
    {"clients_are_counted_and_described", clients_are_counted_and_described},
    {"threads_exclude_each_other_and_tokens_rise", threads_exclude_each_other_and_tokens_rise},
    {NULL, NULL},
};
