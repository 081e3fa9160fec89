//! What the types can be used for.

use fencelock::{blocking, *};

#[test]
fn handles_cross_threads_and_guards_may_be_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Client>();
    shared::<Lock>();
    shared::<RwLock>();
    shared::<Semaphore>();
    shared::<Guard>();
    shared::<Lost>();
    shared::<Wanted>();
    shared::<blocking::Client>();
    shared::<blocking::Lock>();
    shared::<blocking::RwLock>();
    shared::<blocking::Semaphore>();
    shared::<blocking::Guard>();
    shared::<CancelToken>();
    shared::<Error>();
    shared::<Ticket>();
    fn cheap<T: Clone + std::fmt::Debug>() {}
    cheap::<Client>();
    cheap::<Lock>();
    cheap::<RwLock>();
    cheap::<Semaphore>();
    cheap::<blocking::Lock>();
    cheap::<blocking::RwLock>();
    cheap::<blocking::Semaphore>();
    cheap::<Builder>();
}

#[test]
fn a_builder_does_not_show_its_url() {
    let builder = Client::builder("redis://:sesame@h").label("x");
    assert!(!format!("{builder:?}").contains("sesame"));
}
