//! Watching a descriptor with the event loop's own poller, libuv's. All that is unsafe is here.
//!
//! libuv belongs to the host, which exports its functions; they are looked up at run time, so that
//! the library loads where there are none.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libloading::os::unix::Library;
use napi::bindgen_prelude::{JsValue, ToNapiValue};
use napi::{Env, sys};

use crate::inbox::{Batch, Dispatch};

/// `UV_POLL` and `UV_READABLE`.
const POLL: c_int = 8;
const READABLE: c_int = 1;

/// A handle of libuv's. Its first member, `data`, is the user's.
type Handle = *mut c_void;

/// libuv's functions, as its header declares them.
struct Uv {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    unref: unsafe extern "C" fn(Handle),
    close: unsafe extern "C" fn(Handle, Option<unsafe extern "C" fn(Handle)>),
    poll_init: unsafe extern "C" fn(*mut sys::uv_loop_s, Handle, c_int) -> c_int,
    poll_start:
        unsafe extern "C" fn(Handle, c_int, unsafe extern "C" fn(Handle, c_int, c_int)) -> c_int,
    poll_stop: unsafe extern "C" fn(Handle) -> c_int,
}

/// A descriptor that is being watched, to be stopped by the loop's thread. The environment's end
/// stops it, too.
pub(crate) struct Watching(*mut Poll);

/// A descriptor that is watched until that is stopped, or the environment ends. libuv's handle points
/// here, and only the loop's thread uses it.
struct Poll {
    uv: Uv,
    /// A `uv_poll_t`, in memory of ours.
    handle: Handle,
    words: usize,
    env: sys::napi_env,
    dispatch: sys::napi_ref,
    /// libuv was asked to close the handle.
    closing: bool,
    cleanup: sys::napi_async_cleanup_hook_handle,
    turn: Box<dyn Fn() -> Batch>,
}

/// Calls `turn` from the event loop whenever the descriptor is readable, and `dispatch` with what it
/// gives, if that is anything. Does not keep the process alive. `None` when it cannot be; the
/// descriptor must stay open as long as `turn` is not dropped.
pub(crate) fn start(
    env: &Env,
    descriptor: RawFd,
    dispatch: &Dispatch<'_>,
    turn: impl Fn() -> Batch + 'static,
) -> Option<Watching> {
    let (uv, event_loop) = (Uv::find()?, env.get_uv_event_loop().ok()?);
    let mut reference = ptr::null_mut();
    // SAFETY: the environment and the function's value are those of the call that runs now.
    let status =
        unsafe { sys::napi_create_reference(env.raw(), dispatch.raw(), 1, &raw mut reference) };
    if status != sys::Status::napi_ok {
        return None;
    }
    // SAFETY: it takes a number and knows the type.
    let words = unsafe { (uv.handle_size)(POLL) }.div_ceil(size_of::<u128>());
    // As aligned as what malloc gives.
    let memory = Box::into_raw(vec![0_u128; words].into_boxed_slice());
    let poll = Box::into_raw(Box::new(Poll {
        uv,
        handle: memory.cast(),
        words,
        env: env.raw(),
        dispatch: reference,
        closing: false,
        cleanup: ptr::null_mut(),
        turn: Box::new(turn),
    }));
    // SAFETY: this is the loop's thread. The handle's memory is as large as libuv says, and both it
    // and `poll` live until `closed`, which alone frees them; or, where libuv has not taken the
    // handle, until here. Nobody else has a reference to `poll` yet.
    unsafe {
        let handle = (*poll).handle;
        if ((*poll).uv.poll_init)(event_loop, handle, descriptor) != 0 {
            sys::napi_delete_reference(env.raw(), reference);
            free(poll);
            return None;
        }
        handle.cast::<*mut Poll>().write(poll);
        ((*poll).uv.unref)(handle);
        let cleanup = &raw mut (*poll).cleanup;
        let hooked = sys::napi_add_async_cleanup_hook(env.raw(), Some(end), poll.cast(), cleanup);
        if hooked != sys::Status::napi_ok
            || ((*poll).uv.poll_start)(handle, READABLE, readable) != 0
        {
            Watching(poll).stop();
            return None;
        }
        Some(Watching(poll))
    }
}

impl Watching {
    /// Watches no longer. From the loop's thread, in a call of JavaScript's.
    pub(crate) fn stop(self) {
        // SAFETY: this is the loop's thread, as `Watching` never leaves the one that made it. What is
        // freed is freed by `closed`, which libuv calls later, and which the environment's end waits for.
        unsafe {
            let poll = self.0;
            if !(*poll).closing {
                sys::napi_delete_reference((*poll).env, (*poll).dispatch);
            }
            close(poll);
        }
    }
}

/// Lets libuv close the handle, once.
unsafe fn close(poll: *mut Poll) {
    // SAFETY: as for the caller: the loop's thread, and a handle that is not freed yet.
    unsafe {
        if !std::mem::replace(&mut (*poll).closing, true) {
            ((*poll).uv.close)((*poll).handle, Some(closed));
        }
    }
}

impl Uv {
    /// `None` where the host has no libuv.
    fn find() -> Option<Uv> {
        let host = Library::this();
        // SAFETY: the types are those of libuv's header, which have been the same since its 1.0.
        // The functions are part of the program that runs and stay.
        unsafe {
            Some(Uv {
                handle_size: *host.get(b"uv_handle_size\0").ok()?,
                unref: *host.get(b"uv_unref\0").ok()?,
                close: *host.get(b"uv_close\0").ok()?,
                poll_init: *host.get(b"uv_poll_init\0").ok()?,
                poll_start: *host.get(b"uv_poll_start\0").ok()?,
                poll_stop: *host.get(b"uv_poll_stop\0").ok()?,
            })
        }
    }
}

/// libuv says that the descriptor is readable, or that it cannot be watched.
unsafe extern "C" fn readable(handle: Handle, status: c_int, _: c_int) {
    // SAFETY: the data of a handle that is not closed is its `Poll`, which nobody changes.
    let poll = unsafe { &**handle.cast::<*const Poll>() };
    if status < 0 {
        // SAFETY: the handle is open. The clients' own threads serve them from now on.
        unsafe { (poll.uv.poll_stop)(handle) };
        return;
    }
    let Ok(batch) = catch_unwind(AssertUnwindSafe(|| (poll.turn)())) else { return };
    if !batch.is_empty() {
        // SAFETY: this is the loop's thread, with no JavaScript under way, and the environment is
        // there until the handle is closed.
        unsafe { call(poll, batch) };
    }
}

/// Calls `dispatch`, and lets promises and ticks run after it.
unsafe fn call(poll: &Poll, batch: Batch) {
    let env = poll.env;
    let mut scope = ptr::null_mut();
    // SAFETY: as for the caller. Values are used within the scope only.
    unsafe {
        if sys::napi_open_handle_scope(env, &raw mut scope) != sys::Status::napi_ok {
            return;
        }
        let (mut function, mut global) = (ptr::null_mut(), ptr::null_mut());
        sys::napi_get_reference_value(env, poll.dispatch, &raw mut function);
        sys::napi_get_global(env, &raw mut global);
        if let Ok(batch) = Batch::to_napi_value(env, batch) {
            let mut result = ptr::null_mut();
            let status = sys::napi_make_callback(
                env,
                ptr::null_mut(),
                global,
                function,
                1,
                &raw const batch,
                &raw mut result,
            );
            let mut error = ptr::null_mut();
            if status == sys::Status::napi_pending_exception
                && sys::napi_get_and_clear_last_exception(env, &raw mut error)
                    == sys::Status::napi_ok
            {
                // As an error in any other callback of the loop.
                sys::napi_fatal_exception(env, error);
            }
        }
        sys::napi_close_handle_scope(env, scope);
    }
}

/// The environment ends, and waits until the handle is closed.
unsafe extern "C" fn end(_: sys::napi_async_cleanup_hook_handle, poll: *mut c_void) {
    // SAFETY: it is called once, on the loop's thread, with what was registered, which lives until
    // `closed`.
    unsafe { close(poll.cast::<Poll>()) };
}

unsafe extern "C" fn closed(handle: Handle) {
    // SAFETY: libuv has let go of the handle, whose data is its `Poll`.
    unsafe {
        let poll = *handle.cast::<*mut Poll>();
        let cleanup = (*poll).cleanup;
        free(poll);
        if !cleanup.is_null() {
            sys::napi_remove_async_cleanup_hook(cleanup);
        }
    }
}

/// Frees the handle's memory and what belongs to it.
unsafe fn free(poll: *mut Poll) {
    // SAFETY: both were made by `Box::into_raw` in `start`, with these lengths, and nobody uses
    // them any more.
    unsafe {
        let poll = Box::from_raw(poll);
        drop(Box::from_raw(ptr::slice_from_raw_parts_mut(poll.handle.cast::<u128>(), poll.words)));
    }
}
