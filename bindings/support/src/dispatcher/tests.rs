use std::time::Duration;

use super::*;

const BOUND: Duration = Duration::from_secs(30);

fn started(serve: Job) -> io::Result<()> {
    std::thread::Builder::new().spawn(serve).map(drop)
}

#[test]
fn nobody_is_given_a_dispatcher_whose_thread_does_not_start() {
    static PLACE: AtomicPtr<Dispatcher> = AtomicPtr::new(std::ptr::null_mut());
    let (told, heard) = mpsc::channel();
    let failing = |_: Job| {
        // A call that comes meanwhile.
        let told = told.clone();
        Dispatcher::at(&PLACE, started).unwrap().post(move || told.send(()).unwrap());
        Err(io::Error::other("a planted failure"))
    };
    let error = Dispatcher::at(&PLACE, failing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    heard.recv_timeout(BOUND).unwrap();
}

#[test]
fn of_two_calls_that_start_one_each_both_get_the_same() {
    static PLACE: AtomicPtr<Dispatcher> = AtomicPtr::new(std::ptr::null_mut());
    let (told, heard) = mpsc::channel();
    let quicker = std::cell::Cell::new(None);
    let slower = |serve: Job| {
        quicker.set(Some(Dispatcher::at(&PLACE, started).unwrap()));
        let told = told.clone();
        started(Box::new(move || {
            serve();
            told.send(()).unwrap();
        }))
    };
    let given = Dispatcher::at(&PLACE, slower).unwrap();
    assert!(std::ptr::eq(given, quicker.get().unwrap()));
    // The thread that was not needed ends.
    heard.recv_timeout(BOUND).unwrap();
}

#[cfg(unix)]
#[test]
fn a_forked_child_has_its_own() {
    let parents = Dispatcher::current().unwrap();
    // So that the child would wait for ever if it touched this.
    let taken = parents.jobs.lock();
    let fine = fencelock_testkit::in_child(|| {
        parents.post(|| panic!("there is no thread that could run this"));
        let own = Dispatcher::current().unwrap();
        let (told, heard) = mpsc::channel();
        own.post(move || told.send(()).unwrap());
        !std::ptr::eq(own, parents) && heard.recv_timeout(BOUND).is_ok()
    });
    drop(taken);
    assert!(fine);
}
