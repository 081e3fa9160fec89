//! One process of the demo: workers that sell.

use std::io::{BufRead, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use fencelock::StoreUrl;
use fencelock::blocking::{Client, Guard, Lock};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::args::DemoWorker;
use crate::demo::clock::micros;
use crate::demo::customers;
use crate::demo::shop::{Sale, Shop};
use crate::demo::wire::{
    Abandoned, Deed, LockSetup, Order, Parked, Report, Setup, Visit, Woke, Written,
};
use crate::exit;
use crate::failure::Failure;

/// Does what standard input says.
pub fn work(_args: &DemoWorker) -> Result<u8, Failure> {
    // Nobody else ends a stopped process whose parent was killed.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(std::io::Error::from)?;
    match sell() {
        Ok(()) => tell(&Report::Finished)?,
        Err(failure) => tell(&Report::Failed(failure.message))?,
    }
    Ok(exit::DONE)
}

fn sell() -> Result<(), Failure> {
    let orders = listen();
    let Ok(Order::Setup(setup)) = orders.recv() else {
        return Err(Failure::own("demo-worker is a part of fencelock demo, not for use by itself"));
    };
    let client = match &setup.lock {
        Some(lock) => Some(connect(setup.process, lock)?),
        None => None,
    };
    let counter = Counter {
        arrivals: customers::arrivals(setup.people, setup.seed),
        lock: match (&client, &setup.lock) {
            (Some(client), Some(lock)) => Some(client.lock(&lock.name)?),
            _ => None,
        },
        orders: Mutex::new(orders),
        setup,
    };
    counter.serve_all()?;
    if let Some(client) = client {
        client.close();
    }
    Ok(())
}

fn connect(process: u32, lock: &LockSetup) -> Result<Client, Failure> {
    let claim = Duration::from_millis(lock.claim_ms);
    let mut builder = Client::builder(&lock.store)
        .lease(Duration::from_millis(lock.lease_ms))
        .claim(claim)
        .label(format!("demo process {}", process + 1));
    // Claims are short here, so that a scene is: all servers' clocks are one machine's, or must be as near.
    if StoreUrl::parse(&lock.store)?.takes_over() {
        builder = builder.clock_slack(claim / 10);
    }
    Ok(builder.connect_blocking()?)
}

/// What all workers of the process share.
struct Counter {
    setup: Setup,
    arrivals: Vec<u32>,
    lock: Option<Lock>,
    orders: Mutex<Receiver<Order>>,
}

impl Counter {
    fn serve_all(&self) -> Result<(), Failure> {
        let workers = (0..self.setup.workers)
            .map(|worker| Worker::new(self, worker))
            .collect::<Result<Vec<Worker<'_>>, Failure>>()?;
        tell(&Report::Ready)?;
        self.await_order()?;
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                workers.into_iter().map(|worker| scope.spawn(|| worker.serve())).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err(Failure::own("a worker panicked")))
            })
        })
    }

    fn await_order(&self) -> Result<Order, Failure> {
        let orders = self.orders.lock().map_err(|_| Failure::own("a worker panicked"))?;
        orders.recv().map_err(|_| Failure::own("the demo has ended"))
    }
}

struct Worker<'a> {
    counter: &'a Counter,
    worker: u32,
    shop: Shop,
    chance: ChaCha8Rng,
    /// What the first customer saw before the sale opened.
    page: Option<Page>,
}

/// What a customer sees before buying.
#[derive(Clone, Copy, Debug)]
struct Page {
    stock: i64,
    has_one: bool,
}

impl<'a> Worker<'a> {
    fn new(counter: &'a Counter, worker: u32) -> Result<Worker<'a>, Failure> {
        let setup = &counter.setup;
        let own = setup.seed ^ (u64::from(setup.process) << 32) ^ (u64::from(worker + 1) << 48);
        let mut worker = Worker {
            counter,
            worker,
            shop: Shop::open(&setup.shop)?,
            chance: ChaCha8Rng::seed_from_u64(own),
            page: None,
        };
        // Without a lock nothing keeps the first customers from opening the page before the sale
        // begins, as they do in every flash sale.
        if counter.lock.is_none()
            && let Some(first) = worker.customers().next()
        {
            worker.page = Some(worker.look(first)?);
        }
        Ok(worker)
    }

    /// Whom this worker serves. Neighbours in the row of arrivals go to different processes.
    fn customers(&self) -> impl Iterator<Item = u32> + use<'a> {
        let setup = &self.counter.setup;
        let place = (self.worker * setup.processes + setup.process) as usize;
        let all = (setup.workers * setup.processes) as usize;
        customers::served_by(&self.counter.arrivals, place, all)
    }

    fn look(&self, person: u32) -> Result<Page, Failure> {
        Ok(Page { stock: self.shop.stock()?, has_one: self.shop.has_one(person)? })
    }

    /// Serves customers until the sale is over.
    fn serve(mut self) -> Result<(), Failure> {
        for person in self.customers() {
            let asked = micros();
            let guard = self.counter.lock.as_ref().map(Lock::acquire).transpose()?;
            let got = micros();
            let deed = self.sell(person, guard.as_ref(), got)?;
            let left = micros();
            let token = guard.as_ref().map(|guard| guard.token().get());
            let abandoned = guard.as_ref().map_or(Abandoned::No, told);
            if let Some(guard) = guard {
                // A lost hold has nothing to release, and the ledger has the last word anyway.
                let _ = guard.release();
            }
            let over = deed == Deed::Over;
            let worker = self.worker;
            tell(&Report::Visit(Visit { worker, token, abandoned, asked, got, left, deed }))?;
            if over {
                break;
            }
        }
        Ok(())
    }

    /// The critical section: read, check, wait a little, write.
    fn sell(&mut self, person: u32, guard: Option<&Guard>, got: u64) -> Result<Deed, Failure> {
        let page = match self.page.take() {
            Some(page) => page,
            None => self.look(person)?,
        };
        if page.stock <= 0 || !self.shop.is_open(micros())? {
            return Ok(Deed::Over);
        }
        if page.has_one {
            return Ok(Deed::HasOne);
        }
        let stock = page.stock;
        if let Some(guard) = guard
            && self.counter.setup.park_at.is_some_and(|at| stock <= at)
            && self.shop.draw_the_lot()?
        {
            return self.park(person, stock, guard, got);
        }
        std::thread::sleep(Duration::from_micros(customers::moment(&mut self.chance)));
        if guard.is_some_and(|guard| !guard.is_valid()) {
            return Ok(Deed::Withdrew);
        }
        Ok(deed(self.write(person, stock, guard)?))
    }

    /// Stands still inside the critical section, then writes without looking whether the lock is
    /// still held: a program that was paused between the look and the write does the same.
    fn park(&mut self, person: u32, stock: i64, guard: &Guard, got: u64) -> Result<Deed, Failure> {
        let token = guard.token().get();
        self.await_confirmation(guard);
        tell(&Report::Parked(Parked { worker: self.worker, token, stock, got }))?;
        self.counter.await_order()?;
        let lost = !guard.is_valid();
        let written = self.write(person, stock, Some(guard))?;
        tell(&Report::Woke(Woke { token, lost, at: micros(), written }))?;
        Ok(deed(written))
    }

    /// Waits until the store has heard of this holder: a hold that was handed over and never heard
    /// from leaves the next one in doubt, and the demo is to show one that certainly held.
    fn await_confirmation(&self, guard: &Guard) {
        let claim = self.counter.setup.lock.as_ref().map_or(0, |lock| lock.claim_ms);
        while guard.is_valid() && guard.remaining() <= Duration::from_millis(claim) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn write(
        &mut self,
        person: u32,
        stock: i64,
        guard: Option<&Guard>,
    ) -> Result<Written, Failure> {
        let setup = &self.counter.setup;
        self.shop.write(Sale {
            person,
            process: setup.process,
            read: stock,
            token: guard.map_or(0, |guard| guard.token().get()),
            checked: setup.checked,
            at: micros(),
        })
    }
}

fn deed(written: Written) -> Deed {
    match written {
        Written::Done { .. } => Deed::Sold,
        Written::Refused { .. } => Deed::Refused,
    }
}

fn told(guard: &Guard) -> Abandoned {
    match guard.previous_abandoned() {
        fencelock::Abandoned::No => Abandoned::No,
        fencelock::Abandoned::Yes => Abandoned::Yes,
        fencelock::Abandoned::Unknown => Abandoned::Unknown,
    }
}

/// Orders from standard input, until it ends.
fn listen() -> Receiver<Order> {
    let (sender, orders) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let order = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            if order.is_none_or(|order| sender.send(order).is_err()) {
                return;
            }
        }
    });
    orders
}

/// Writes one line, whole.
fn tell(report: &Report) -> Result<(), Failure> {
    let mut line = serde_json::to_string(report)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(())
}
