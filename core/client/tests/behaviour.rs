//! The one behaviour suite, run against every store.

mod suite;

use suite::World;

/// Makes a test of each case on one store, in a module: an async case of `async fn case(&World)`. `$world` gives
/// the store, or nothing where servers are left out.
macro_rules! on_store {
    ($name:ident, $world:ident { $($module:ident { $($case:ident,)* })* }) => {
        mod $name { $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(world) = Option::from(crate::World::$world()) {
                    crate::suite::$module::$case(&world).await
                }
            }
        )*)* }
    };
}

macro_rules! on_every_store {
    ($($cases:tt)*) => {
        on_store! { memory, memory { $($cases)* } }
        on_store! { sqlite, sqlite { $($cases)* } }
        on_store! { redis, redis { $($cases)* } }
        on_store! { redis_cluster, cluster { $($cases)* } }
        on_store! { quorum, quorum { $($cases)* } }
        on_store! { sentinel, sentinel { $($cases)* } }
        on_store! { zookeeper, zookeeper { $($cases)* } }
    };
}

on_every_store! {
    exclusion {
        p01_one_holder_at_a_time,
        p02_tokens_rise_over_local_hand_offs_and_clients,
        p02_tokens_rise_over_expiry,
        p03_the_end_of_a_lost_guard_does_not_touch_its_successor,
    }
    reentry {
        p05_the_same_task_re_enters_and_each_hold_counts,
        p05_another_task_does_not_re_enter,
        p05_re_entry_on_an_ended_hold_is_a_new_grant,
        p05_non_reentrant_excludes_its_own_task,
        p05_a_shorter_inner_lease_does_not_cut_the_outer_one,
        p05_levels_end_in_any_order,
        p05_branches_of_one_task_get_the_lock_together,
        p05_a_re_entry_goes_on_when_its_outer_hold_is_dropped,
        p08_every_level_is_told_of_the_loss_and_none_that_was_left,
        p08_the_callbacks_of_a_level_that_was_left_are_freed,
    }
    owners {
        p06_an_explicit_owner_re_enters_from_another_client,
        p06_another_owner_is_kept_out,
        p06_a_ticket_joins_the_hold,
        p06_a_ticket_of_a_hold_that_is_over_is_refused,
        p06_only_an_explicit_owner_has_a_ticket,
        p06_a_guard_may_be_released_by_another_task,
    }
    modes {
        readers_hold_together_and_a_writer_alone,
        an_owner_re_enters_but_not_from_reading_to_writing,
        a_writer_reads_on_and_a_lone_reader_writes,
        who_reads_inside_a_write_lets_others_read_when_it_releases_the_write,
        an_upgrade_that_is_dropped_is_undone,
        each_reader_counts_its_own_levels,
        reads_of_one_owner_pass_the_writers_that_wait_for_it,
        a_write_that_waits_ends_when_its_owner_is_let_in_to_read,
        each_reader_is_lost_by_itself,
        a_dropped_wait_leaves_nothing_behind,
        explicit_owners_read_from_two_clients,
        readers_and_permits_are_handed_on_together,
        permits_are_counted_in_order,
        who_was_refused_is_told_of_what,
        permits_that_cannot_be_are_refused,
        who_adopts_follows_the_number_of_others,
        a_drain_lets_readers_go_on_and_nobody_begin,
        a_close_ends_readers_and_permits,
        threads_share_too,
        a_store_that_cannot_says_so,
    }
    leases {
        p07_a_hold_is_renewed_until_released,
        p07_an_explicit_lease_ends_on_time,
        p07_max_hold_is_a_ceiling,
        p07_extend_lengthens_and_never_shortens,
        p07_many_holds_are_renewed_together,
        p08_a_lost_hold_says_so_everywhere,
        p08_broken_holds_are_told,
        p08_extend_of_a_lost_hold_fails,
    }
    waiting {
        p09_try_does_not_wait,
        p09_a_bounded_wait_times_out_or_succeeds,
        p09_an_unbounded_wait_is_served_on_release,
        p09_two_hundred_waiters_of_one_client_are_served_in_order,
        p09_clients_are_served_in_order,
        p09_contended_tries_of_many_threads_never_hang,
        p10_the_holder_is_told_that_it_is_wanted,
        p10_local_waiters_do_not_starve_another_client,
    }
    ending {
        p11_a_dropped_wait_leaves_nothing_behind,
        p11_waits_dropped_at_any_point_leave_the_lock_free,
        p11_a_dropped_guard_is_released,
        p11_close_tells_holds_cancels_waits_and_frees_the_lock,
        p11_dropping_every_handle_closes,
        p11_a_close_says_whether_all_was_released,
        p11_a_drain_that_takes_too_long_loses_what_is_left,
        p11_a_client_may_be_drained_for_as_long_as_it_takes,
        p12_a_released_predecessor_is_not_abandoned,
        p12_a_crashed_predecessor_is_told,
    }
    admin {
        p14_kinds_of_errors,
        odd_names_are_names_of_their_own,
        inspect_shows_holder_token_and_waiters_in_order,
        inspect_counts_who_waits_within_a_client,
        list_finds_by_prefix,
        list_keeps_its_limit_among_many_names,
        is_locked_follows_the_holder,
        ping_tells_the_stores_time,
        metrics_count_what_happened,
        one_client_serves_many_tasks_on_many_locks,
    }
}

// Some of them where replicas confirm each grant.
on_store! { redis_confirmed, confirmed {
    exclusion {
        p01_one_holder_at_a_time,
        p02_tokens_rise_over_local_hand_offs_and_clients,
        p02_tokens_rise_over_expiry,
        p03_the_end_of_a_lost_guard_does_not_touch_its_successor,
    }
    reentry {
        p05_a_shorter_inner_lease_does_not_cut_the_outer_one,
        p05_branches_of_one_task_get_the_lock_together,
        p05_re_entry_on_an_ended_hold_is_a_new_grant,
    }
    owners {
        p06_an_explicit_owner_re_enters_from_another_client,
        p06_a_ticket_joins_the_hold,
    }
    modes {
        readers_hold_together_and_a_writer_alone,
        a_writer_reads_on_and_a_lone_reader_writes,
        an_upgrade_that_is_dropped_is_undone,
        readers_and_permits_are_handed_on_together,
        permits_are_counted_in_order,
    }
    leases {
        p07_a_hold_is_renewed_until_released,
        p07_extend_lengthens_and_never_shortens,
        p07_many_holds_are_renewed_together,
        p08_broken_holds_are_told,
    }
    waiting {
        p09_an_unbounded_wait_is_served_on_release,
        p09_two_hundred_waiters_of_one_client_are_served_in_order,
        p09_clients_are_served_in_order,
        p09_contended_tries_of_many_threads_never_hang,
        p10_local_waiters_do_not_starve_another_client,
    }
    ending {
        p11_waits_dropped_at_any_point_leave_the_lock_free,
        p11_a_dropped_guard_is_released,
        p11_close_tells_holds_cancels_waits_and_frees_the_lock,
        p12_a_crashed_predecessor_is_told,
    }
    admin {
        inspect_shows_holder_token_and_waiters_in_order,
        one_client_serves_many_tasks_on_many_locks,
    }
} }

/// The same for blocking cases.
macro_rules! blocking_on_store {
    ($name:ident, $world:ident { $($case:ident,)* }) => {
        mod $name { $(
            #[test]
            fn $case() {
                if let Some(world) = Option::from(crate::World::$world()) {
                    crate::suite::blocking::$case(&world)
                }
            }
        )* }
    };
}

macro_rules! blocking_on_every_store {
    ($($cases:tt)*) => {
        blocking_on_store! { blocking_memory, memory { $($cases)* } }
        blocking_on_store! { blocking_sqlite, sqlite { $($cases)* } }
        blocking_on_store! { blocking_redis, redis { $($cases)* } }
        blocking_on_store! { blocking_redis_cluster, cluster { $($cases)* } }
        blocking_on_store! { blocking_quorum, quorum { $($cases)* } }
        blocking_on_store! { blocking_sentinel, sentinel { $($cases)* } }
        blocking_on_store! { blocking_zookeeper, zookeeper { $($cases)* } }
    };
}

blocking_on_every_store! {
    p01_threads_exclude_each_other,
    p02_tokens_rise_over_threads,
    p05_a_thread_re_enters,
    p05_two_threads_of_one_owner_do_not_block_each_other,
    p05_threads_of_one_owner_get_the_lock_together,
    p06_a_guard_may_be_released_by_another_thread,
    p06_blocking_and_async_share_an_explicit_owner,
    p07_a_hold_is_renewed_while_its_thread_is_away,
    p08_lost_is_told_to_a_callback,
    p14_a_drain_ends_when_another_thread_closes,
    p09_try_and_bounded_waits,
    p09_a_wait_that_gives_itself_back_keeps_its_place,
    p09_a_parked_waiter_is_served_by_another_client,
    p09_callers_come_and_go_and_nobody_is_forgotten,
    p11_a_wait_is_cancelled_from_another_thread,
    p11_who_is_asked_whether_to_give_up_may_call_the_client,
    p11_a_dropped_guard_frees_the_lock_without_another_call,
    p11_a_thread_that_ends_may_release_and_acquire,
    p11_close_ends_waits,
    p11_a_guard_is_dropped_outside_its_runtime,
    p13_the_end_of_its_runtime_closes_a_client,
    works_inside_a_runtime,
}
