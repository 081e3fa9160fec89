//! Calls of the C ABI on the store in memory, in any order, with right and wrong handles.

// What is fuzzed takes pointers.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use fencelock_c::*;

use crate::bytes::Bytes;

/// No input makes more handles: the slots of ended ones are used again, which is what may go wrong.
const MOST: usize = 64;

/// Every handle that was given, freed ones included, as the numbers that they are.
#[derive(Default)]
struct World {
    given: Vec<usize>,
    asked: usize,
}

static CALLED: AtomicUsize = AtomicUsize::new(0);
static DESTROYED: AtomicUsize = AtomicUsize::new(0);

/// The input that is run, and the call that was called back last: which one and of which input.
static INPUT: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn called(completion: *const fencelock_completion, user: *mut c_void) {
    // SAFETY: the library's word.
    let completion = unsafe { *completion };
    assert!(completion.ended);
    free_all(&completion);
    LAST.store(user.addr(), Ordering::SeqCst);
    CALLED.fetch_add(1, Ordering::SeqCst);
}

/// What a call passes as its user data: its input and what it was.
fn user(op: u8) -> *mut c_void {
    without_provenance_mut(INPUT.load(Ordering::SeqCst) << 8 | usize::from(op))
}

unsafe extern "C" fn lost(reason: fencelock_loss, _: *mut c_void) {
    assert!((FENCELOCK_LOSS_ENDED..=FENCELOCK_LOSS_CLOSED).contains(&reason));
}

unsafe extern "C" fn wanted(_: *mut c_void) {}

unsafe extern "C" fn destroyed(_: *mut c_void) {
    DESTROYED.fetch_add(1, Ordering::SeqCst);
}

fn free_all(completion: &fencelock_completion) {
    // SAFETY: each is NULL or a handle that was just given.
    unsafe {
        assert_eq!(fencelock_error_free(completion.error), FENCELOCK_OK);
        assert_eq!(fencelock_client_free(completion.client), FENCELOCK_OK);
        assert_eq!(fencelock_hold_free(completion.hold), FENCELOCK_OK);
        assert_eq!(fencelock_names_free(completion.names), FENCELOCK_OK);
        assert_eq!(fencelock_inspection_free(completion.inspection), FENCELOCK_OK);
    }
}

/// Takes the bytes as calls. Every call returns, with a status of the list; every asynchronous one
/// that began calls back once; when all is freed, no handle is left.
pub fn abi(bytes: &[u8]) {
    let before = fencelock_live_handles();
    INPUT.fetch_add(1, Ordering::SeqCst);
    let (called, destroyed) = (CALLED.load(Ordering::SeqCst), DESTROYED.load(Ordering::SeqCst));
    let mut world = World::default();
    let mut listeners = 0;
    let mut bytes = Bytes::new(bytes);
    while !bytes.is_empty() && world.given.len() < MOST {
        world.step(&mut bytes, &mut listeners);
    }
    for handle in &world.given {
        // Each is of one kind: all but that one refuse it. Closing ends what waits.
        // SAFETY: a handle needs not be right.
        unsafe {
            fencelock_client_close(without_provenance_mut(*handle), 0, null_mut());
        }
    }
    for handle in &world.given {
        free(*handle);
    }
    // A client drains on a thread of its own, and says so when it has.
    until("callbacks", world.asked, || CALLED.load(Ordering::SeqCst) - called);
    until("user data destroyed", listeners, || DESTROYED.load(Ordering::SeqCst) - destroyed);
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { fencelock_callbacks_wait(-1, null_mut()) }, FENCELOCK_OK);
    assert_eq!(CALLED.load(Ordering::SeqCst) - called, world.asked, "callbacks");
    assert_eq!(DESTROYED.load(Ordering::SeqCst) - destroyed, listeners, "user data destroyed");
    assert_eq!(fencelock_live_handles(), before, "handles");
}

fn until(what: &str, wanted: usize, mut count: impl FnMut() -> usize) {
    let began = std::time::Instant::now();
    while count() != wanted {
        let (input, last) = (INPUT.load(Ordering::SeqCst), LAST.load(Ordering::SeqCst));
        assert!(
            began.elapsed().as_secs() < 30,
            "never: {what}: {} of {wanted}; input {input}, called back last: op {} of input {}",
            count(),
            last & 0xff,
            last >> 8,
        );
        std::thread::yield_now();
    }
}

fn free(handle: usize) {
    // SAFETY: a handle needs not be right.
    unsafe {
        fencelock_hold_free(without_provenance_mut(handle));
        fencelock_lock_free(without_provenance_mut(handle));
        fencelock_rwlock_free(without_provenance_mut(handle));
        fencelock_semaphore_free(without_provenance_mut(handle));
        fencelock_client_free(without_provenance_mut(handle));
        fencelock_cancel_free(without_provenance_mut(handle));
        fencelock_operation_free(without_provenance_mut(handle));
        fencelock_error_free(without_provenance_mut(handle));
        fencelock_text_free(without_provenance_mut(handle));
        fencelock_names_free(without_provenance_mut(handle));
        fencelock_inspection_free(without_provenance_mut(handle));
    }
}

impl World {
    /// A handle: most often one that was given, of whichever kind, freed or not.
    fn any<T>(&self, bytes: &mut Bytes<'_>) -> *mut T {
        let bits = match bytes.byte() {
            0 => 0,
            1 => bytes.number() as usize,
            choice => {
                let count = self.given.len();
                // The latest first: small numbers make what is likely to fit.
                let chosen = count.checked_sub(1 + (usize::from(choice) - 2) % count.max(1));
                chosen.map_or(0, |index| self.given[index])
            }
        };
        without_provenance_mut(bits)
    }

    fn keep<T>(&mut self, handle: *mut T) {
        if !handle.is_null() {
            self.given.push(handle.addr());
        }
    }

    /// A status of the list, and an error object just when it is an error.
    fn ended(&mut self, status: fencelock_status, error: *mut fencelock_error) {
        assert!((FENCELOCK_OK..=FENCELOCK_WOULD_DEADLOCK).contains(&status), "{status}");
        assert_eq!(status == FENCELOCK_OK, error.is_null());
        // SAFETY: it was just given.
        unsafe {
            if !error.is_null() {
                assert_ne!(*fencelock_error_message(error), 0);
            }
            assert_eq!(fencelock_error_free(error), FENCELOCK_OK);
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>, listeners: &mut usize) {
        let error = &mut null_mut();
        let now = &mut fencelock_completion {
            size: size_of::<fencelock_completion>(),
            // SAFETY: all zeros are a completion.
            ..unsafe { std::mem::zeroed() }
        };
        let op = bytes.byte() % 31;
        // SAFETY: handles need not be right; all other pointers are.
        let status = unsafe {
            match op {
                0 => {
                    let mut client = null_mut();
                    let url = c"memory:fuzz".as_ptr();
                    let status = fencelock_connect(url, usize::MAX, null(), &mut client, error);
                    self.keep(client);
                    status
                }
                1 | 2 => {
                    let name = bytes.slice(1);
                    let (data, length) = (name.as_ptr().cast::<c_char>(), name.len());
                    let mut lock = null_mut();
                    let client = self.any(bytes);
                    let status = fencelock_client_lock(client, data, length, &mut lock, error);
                    self.keep(lock);
                    status
                }
                3 | 4 => {
                    let mut hold = null_mut();
                    let options = self.options(bytes, 0);
                    let lock = self.any(bytes);
                    let status = fencelock_lock_acquire(lock, &raw const options, &mut hold, error);
                    self.keep(hold);
                    status
                }
                5 | 6 => {
                    let mut operation = null_mut();
                    let options = self.options(bytes, -1);
                    let place = if bytes.flip() { &raw mut *now } else { null_mut() };
                    let lock = self.any(bytes);
                    let options = &raw const options;
                    let status = match bytes.flip() {
                        true => fencelock_lock_acquire_async(
                            lock,
                            options,
                            place,
                            Some(called),
                            user(op),
                            &mut operation,
                            error,
                        ),
                        false => fencelock_lock_enter_async(
                            lock,
                            options,
                            place,
                            Some(called),
                            user(op),
                            &mut operation,
                            error,
                        ),
                    };
                    self.keep(operation);
                    self.began(status, now);
                    status
                }
                7 => fencelock_hold_release(self.any(bytes), error),
                8 => {
                    let hold = self.any(bytes);
                    let place = if bytes.flip() { &raw mut *now } else { null_mut() };
                    let status =
                        fencelock_hold_release_async(hold, place, Some(called), user(op), error);
                    self.began(status, now);
                    status
                }
                9 => {
                    let options = self.options(bytes, 0);
                    let mut token = 0;
                    fencelock_lock_enter(self.any(bytes), &raw const options, &mut token, error)
                }
                10 => {
                    let options = self.options(bytes, 0);
                    fencelock_lock_leave(self.any(bytes), &raw const options, error)
                }
                11 => {
                    let options = self.options(bytes, 0);
                    let mut hold = null_mut();
                    let lock = self.any(bytes);
                    let status = fencelock_lock_entered(lock, &raw const options, &mut hold, error);
                    self.keep(hold);
                    status
                }
                12 => {
                    let mut token = 0;
                    fencelock_hold_check(self.any(bytes), &mut token, error)
                }
                13 => {
                    let hold = self.any(bytes);
                    let (data, destroy) = (null_mut(), Some(destroyed as _));
                    let status = match bytes.flip() {
                        true => fencelock_hold_on_lost(hold, Some(lost), data, destroy, error),
                        false => fencelock_hold_on_wanted(hold, Some(wanted), data, destroy, error),
                    };
                    *listeners += usize::from(status == FENCELOCK_OK);
                    status
                }
                14 => {
                    let mut cancel = null_mut();
                    let status = fencelock_cancel_new(&mut cancel, error);
                    self.keep(cancel);
                    status
                }
                15 => {
                    let cancel = self.any(bytes);
                    let status = match bytes.flip() {
                        true => fencelock_cancel_signal(cancel),
                        false => fencelock_cancel_trigger(cancel),
                    };
                    assert!(status == FENCELOCK_OK || status == FENCELOCK_INVALID_ARGUMENT);
                    FENCELOCK_OK
                }
                16 => {
                    fencelock_operation_cancel(self.any(bytes));
                    FENCELOCK_OK
                }
                17 => {
                    let mut text = null_mut();
                    let status = match bytes.below(3) {
                        0 => fencelock_hold_ticket(self.any(bytes), &mut text, error),
                        1 => fencelock_client_id(self.any(bytes), &mut text, error),
                        _ => fencelock_client_metrics(self.any(bytes), &mut text, error),
                    };
                    self.keep(text);
                    status
                }
                18 => {
                    let mut names = null_mut();
                    let client = self.any(bytes);
                    let limit = bytes.number() as usize;
                    let status = fencelock_client_list(client, null(), 0, limit, &mut names, error);
                    let (mut count, mut name) = (0, std::mem::zeroed());
                    if fencelock_names_count(names, &mut count) == FENCELOCK_OK {
                        let got = fencelock_names_get(names, bytes.below(8), &mut name);
                        assert!(got == FENCELOCK_OK || got == FENCELOCK_INVALID_ARGUMENT);
                    }
                    self.keep(names);
                    status
                }
                19 => {
                    let mut inspection = null_mut();
                    let client = self.any(bytes);
                    let name = bytes.slice(1);
                    let (data, length) = (name.as_ptr().cast::<c_char>(), name.len());
                    let status =
                        fencelock_client_inspect(client, data, length, &mut inspection, error);
                    // Room for all that the size promises.
                    let mut info = [0usize; 32];
                    info[0] = bytes.below(200);
                    fencelock_inspection_lock(inspection, info.as_mut_ptr().cast());
                    self.keep(inspection);
                    status
                }
                20 => {
                    let client = self.any(bytes);
                    let name = bytes.slice(1);
                    let (mut ended, mut later, token) = (0, 0, bytes.number());
                    let (data, length) = (name.as_ptr().cast::<c_char>(), name.len());
                    fencelock_client_break(
                        client, data, length, token, &mut ended, &mut later, error,
                    )
                }
                21 => {
                    let hold = self.any(bytes);
                    fencelock_hold_extend(hold, bytes.number().cast_signed(), error)
                }
                22 => {
                    let client = self.any(bytes);
                    let drain = i64::from(bytes.flip());
                    match bytes.flip() {
                        true => fencelock_client_close(client, drain, error),
                        false => {
                            let status = fencelock_client_close_async(
                                client,
                                drain,
                                Some(called),
                                user(op),
                                error,
                            );
                            self.began(status, now);
                            status
                        }
                    }
                }
                23 => {
                    // Read, whatever it is.
                    let handle: usize = self.any::<c_void>(bytes).addr();
                    let mut string = std::mem::zeroed();
                    let mut flag = false;
                    fencelock_text_get(without_provenance(handle), &mut string);
                    fencelock_lock_name(without_provenance(handle), &mut string);
                    fencelock_rwlock_name(without_provenance(handle), &mut string);
                    fencelock_semaphore_name(without_provenance(handle), &mut string);
                    fencelock_hold_name(without_provenance(handle), &mut string);
                    fencelock_hold_is_valid(without_provenance(handle), &mut flag);
                    fencelock_error_message(without_provenance(handle));
                    FENCELOCK_OK
                }
                25 => self.modes(bytes, error),
                29 => self.converts(bytes, now, op, error),
                30 => self.resizes(bytes, op, error),
                26 => {
                    let mut hold = null_mut();
                    let options = self.options(bytes, 0);
                    let (options, any) = (&raw const options, self.any::<c_void>(bytes));
                    let (lock, semaphore) = (any.cast(), any.cast());
                    let status = match bytes.below(3) {
                        0 => fencelock_rwlock_acquire_read(lock, options, &mut hold, error),
                        1 => fencelock_rwlock_acquire_write(lock, options, &mut hold, error),
                        _ => {
                            let count = bytes.below(5) as u32;
                            fencelock_semaphore_acquire(semaphore, count, options, &mut hold, error)
                        }
                    };
                    self.keep(hold);
                    status
                }
                27 => {
                    let mut operation = null_mut();
                    let options = self.options(bytes, -1);
                    let place = if bytes.flip() { &raw mut *now } else { null_mut() };
                    let any = self.any::<c_void>(bytes);
                    let options = &raw const options;
                    let (asked, user) = (Some(called as _), user(op));
                    let status = match bytes.below(4) {
                        0 => fencelock_rwlock_acquire_read_async(
                            any.cast(),
                            options,
                            place,
                            asked,
                            user,
                            &mut operation,
                            error,
                        ),
                        1 => fencelock_rwlock_acquire_write_async(
                            any.cast(),
                            options,
                            place,
                            asked,
                            user,
                            &mut operation,
                            error,
                        ),
                        2 => fencelock_semaphore_available_permits_async(
                            any.cast(),
                            asked,
                            user,
                            error,
                        ),
                        _ => fencelock_semaphore_acquire_async(
                            any.cast(),
                            bytes.below(5) as u32,
                            options,
                            place,
                            asked,
                            user,
                            &mut operation,
                            error,
                        ),
                    };
                    self.keep(operation);
                    self.began(status, now);
                    status
                }
                _ => {
                    free(self.any::<c_void>(bytes).addr());
                    FENCELOCK_OK
                }
            }
        };
        self.ended(status, *error);
    }

    /// A read-write lock, one of its sides, a semaphore.
    fn modes(
        &mut self,
        bytes: &mut Bytes<'_>,
        error: *mut *mut fencelock_error,
    ) -> fencelock_status {
        let choice = bytes.below(5);
        let name = bytes.slice(1);
        let (data, length) = (name.as_ptr().cast::<c_char>(), name.len());
        let any = self.any::<c_void>(bytes);
        let (mut rwlock, mut semaphore, mut lock) = (null_mut(), null_mut(), null_mut());
        // SAFETY: handles need not be right; all other pointers are.
        let status = unsafe {
            match choice {
                0 | 1 => fencelock_client_rwlock(any.cast(), data, length, &mut rwlock, error),
                2 => fencelock_rwlock_reader(any.cast(), &mut lock, error),
                3 => fencelock_rwlock_writer(any.cast(), &mut lock, error),
                _ => {
                    let of = bytes.below(5) as u32;
                    fencelock_client_semaphore(any.cast(), data, length, of, &mut semaphore, error)
                }
            }
        };
        self.keep(rwlock);
        self.keep(semaphore);
        self.keep(lock);
        status
    }

    /// A hold reads from now on, or writes.
    fn converts(
        &mut self,
        bytes: &mut Bytes<'_>,
        now: &mut fencelock_completion,
        op: u8,
        error: *mut *mut fencelock_error,
    ) -> fencelock_status {
        let hold = self.any::<fencelock_hold>(bytes);
        let mut mode = 0;
        let place = if bytes.flip() { &raw mut *now } else { null_mut() };
        let (called, user) = (Some(called as _), user(op));
        // SAFETY: handles need not be right; all other pointers are.
        unsafe {
            let status = match bytes.below(5) {
                0 => return fencelock_hold_downgrade(hold, error),
                1 => return fencelock_hold_try_upgrade(hold, error),
                2 => fencelock_hold_downgrade_async(hold, place, called, user, error),
                3 => fencelock_hold_try_upgrade_async(hold, place, called, user, error),
                _ => {
                    fencelock_hold_mode(hold, &mut mode);
                    return FENCELOCK_OK;
                }
            };
            self.began(status, now);
            status
        }
    }

    /// A semaphore has another number of permits, or its handle follows that; one hold is broken.
    fn resizes(
        &mut self,
        bytes: &mut Bytes<'_>,
        op: u8,
        error: *mut *mut fencelock_error,
    ) -> fencelock_status {
        let any = self.any::<c_void>(bytes);
        let (name, id) = (bytes.slice(1), bytes.slice(32));
        let (data, length) = (name.as_ptr().cast::<c_char>(), name.len());
        let (hold, hold_length) = (id.as_ptr().cast::<c_char>(), id.len());
        let (mut adopting, mut used, mut ended, mut later) = (null_mut(), false, 0, 0);
        let (called, user) = (Some(called as _), user(op));
        let (of, token) = (bytes.below(6) as u32, bytes.number());
        // SAFETY: handles need not be right; all other pointers are.
        unsafe {
            let status = match bytes.below(5) {
                0 => fencelock_semaphore_adopting(any.cast(), &mut adopting, error),
                1 => fencelock_semaphore_resize(any.cast(), of, &mut used, error),
                2 => fencelock_client_break_hold(
                    any.cast(),
                    data,
                    length,
                    token,
                    hold,
                    hold_length,
                    &mut ended,
                    &mut later,
                    error,
                ),
                way => {
                    let status = match way {
                        3 => fencelock_semaphore_resize_async(any.cast(), of, called, user, error),
                        _ => fencelock_client_break_hold_async(
                            any.cast(),
                            data,
                            length,
                            token,
                            hold,
                            hold_length,
                            called,
                            user,
                            error,
                        ),
                    };
                    self.asked += usize::from(status == FENCELOCK_OK);
                    return status;
                }
            };
            self.keep(adopting);
            status
        }
    }

    /// An asynchronous call has begun, or has ended already.
    fn began(&mut self, status: fencelock_status, now: &fencelock_completion) {
        if now.ended {
            assert_eq!(status, FENCELOCK_OK);
            free_all(now);
        } else if status == FENCELOCK_OK {
            self.asked += 1;
        }
    }

    fn options(&self, bytes: &mut Bytes<'_>, timeout_ns: i64) -> fencelock_acquire_options {
        const OWNER: &[u8] = b"abc";
        // A call that blocks must end by itself, and soon: nobody else is there to release.
        let timeout_ns = match bytes.below(8) {
            7 => (bytes.number() % 1_000_000).cast_signed(),
            6 => -2 - (bytes.number() >> 2).cast_signed(),
            _ => timeout_ns,
        };
        fencelock_acquire_options {
            size: size_of::<fencelock_acquire_options>(),
            timeout_ns,
            lease_ns: 0,
            max_hold_ns: 0,
            owner_number: bytes.below(3) as u64,
            owner_kind: bytes.below(5) as u32,
            reserved: 0,
            owner: OWNER.as_ptr().cast(),
            owner_length: 1 + bytes.below(3),
            cancel: if bytes.below(4) == 3 { self.any(bytes) } else { null_mut() },
            block_ns: [0, 0, 1_000, -1][bytes.below(4)],
        }
    }
}
