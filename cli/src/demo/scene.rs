//! Plays one scene.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencelock::blocking::Client;

use crate::demo::clock::micros;
use crate::demo::outcome::{Incident, Outcome, Scene};
use crate::demo::progress::Progress;
use crate::demo::shop::Shop;
use crate::demo::team::{Message, Team};
use crate::demo::wire::{Deed, LockSetup, Order, Parked, Report, Setup, Visit};
use crate::failure::Failure;

/// The lease while nothing is to befall a holder.
const CALM_LEASE: Duration = Duration::from_secs(30);
/// The lease while a holder is paused or killed: short, so that nobody waits long.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// The claim of a hold that is handed over.
const CLAIM: Duration = Duration::from_millis(500);
/// How long a holder has been inside when something befalls it: a store that is told of a hold only
/// when it lasts, as ZooKeeper, knows of it by then.
const INSIDE: Duration = Duration::from_millis(100);
/// So many others sell before a paused holder may wake up.
const SOLD_MEANWHILE: usize = 6;
/// How long the store may take to show that a stopped process does not block it.
const PROBE: Duration = Duration::from_millis(500);

/// The sale's particulars, the same in every scene.
#[derive(Debug)]
pub struct Cast<'a> {
    /// Coupons in stock.
    pub coupons: u32,
    /// Processes that sell.
    pub processes: u32,
    /// Workers of each.
    pub workers: u32,
    /// Customers and their order.
    pub seed: u64,
    /// The lock's store.
    pub store: &'a str,
    /// The beginning of the locks' names.
    pub prefix: &'a str,
    /// The parent's own connection to the store.
    pub probe: &'a Client,
    /// Where the shops are.
    pub place: &'a Path,
    /// What has another server take over, where that is to be played.
    pub failover: Option<&'a str>,
}

impl Cast<'_> {
    /// How long the sale is open: room enough on a slow machine.
    fn window(&self) -> u64 {
        30_000_000 + u64::from(self.coupons) * 50_000
    }

    /// The name of a scene's lock.
    fn lock(&self, scene: Scene) -> String {
        format!("{}/{}", self.prefix, scene.title())
    }

    fn setup(&self, scene: Scene, process: u32, shop: &Path) -> Setup {
        let mishap = matches!(scene, Scene::Paused | Scene::Unchecked | Scene::Killed);
        let lease = if mishap { SHORT_LEASE } else { CALM_LEASE };
        Setup {
            process,
            processes: self.processes,
            workers: self.workers,
            shop: shop.to_owned(),
            people: self.coupons * 4,
            seed: self.seed,
            lock: (scene != Scene::NoLock).then(|| LockSetup {
                store: self.store.to_owned(),
                name: self.lock(scene),
                lease_ms: lease.as_millis() as u64,
                claim_ms: CLAIM.as_millis() as u64,
            }),
            checked: scene != Scene::Unchecked,
            park_at: mishap.then(|| i64::from(self.coupons) * 2 / 3),
        }
    }

    /// Plays a scene and gives what was seen.
    pub fn play(&self, scene: Scene, progress: &mut Progress) -> Result<Outcome, Failure> {
        let file = self.place.join(format!("{}.sqlite", scene.title().replace([' ', ','], "-")));
        let shop = Shop::create(&file, self.coupons)?;
        let setups: Vec<Setup> =
            (0..self.processes).map(|process| self.setup(scene, process, &file)).collect();
        let mut team = Team::start(&setups)?;
        for _ in 0..self.processes {
            match team.next()? {
                (_, Message::Report(Report::Ready)) => {}
                (process, other) => return Err(unexpected(process, &other)),
            }
        }
        let opened = micros();
        let closed = opened + self.window();
        shop.set_window(opened, closed)?;
        for process in 0..self.processes {
            team.tell(process, &Order::Begin)?;
        }
        let mut course = Course {
            cast: self,
            scene,
            team,
            progress,
            visits: Vec::new(),
            incident: None,
            failed_over: None,
            left: BTreeSet::new(),
        };
        course.follow()?;
        let Course { mut visits, incident, failed_over, .. } = course;
        visits.sort_by_key(|(_, visit)| (visit.token, visit.got));
        Ok(Outcome {
            scene,
            coupons: self.coupons,
            books: shop.books(self.processes)?,
            sellers: Vec::new(),
            ended: visits.iter().map(|(_, visit)| visit.left).max().unwrap_or(opened),
            visits,
            incident,
            failed_over,
            opened,
            closed,
        })
    }
}

/// A scene while it is played.
struct Course<'a> {
    cast: &'a Cast<'a>,
    scene: Scene,
    team: Team,
    progress: &'a mut Progress,
    visits: Vec<(u32, Visit)>,
    incident: Option<Incident>,
    /// When the failover began.
    failed_over: Option<u64>,
    /// Who was killed, or has told that it is finished.
    left: BTreeSet<u32>,
}

impl Course<'_> {
    /// Until every process has finished, or was killed, and all that it told was heard.
    fn follow(&mut self) -> Result<(), Failure> {
        let mut gone = 0;
        while gone < self.cast.processes {
            match self.team.next()? {
                (process, Message::Report(Report::Visit(visit))) => {
                    if visit.deed == Deed::Sold {
                        self.progress.sold();
                    }
                    self.visits.push((process, visit));
                    self.wake_in_time()?;
                    self.fail_over_in_time()?;
                }
                (process, Message::Report(Report::Parked(parked))) => {
                    self.strike(process, parked)?;
                }
                (_, Message::Report(Report::Woke(woke))) => {
                    if let Some(incident) = &mut self.incident {
                        incident.woke = Some(woke);
                    }
                }
                (process, Message::Report(Report::Finished)) => {
                    self.left.insert(process);
                }
                (process, Message::Gone) if self.left.contains(&process) => gone += 1,
                (process, other) => return Err(unexpected(process, &other)),
            }
        }
        Ok(())
    }

    /// Has another server take over when half of the coupons are sold.
    fn fail_over_in_time(&mut self) -> Result<(), Failure> {
        let Some(command) = self.cast.failover.filter(|_| self.scene == Scene::Failover) else {
            return Ok(());
        };
        let sold = self.visits.iter().filter(|(_, visit)| visit.deed == Deed::Sold).count();
        if self.failed_over.is_some() || sold * 2 < self.cast.coupons as usize {
            return Ok(());
        }
        self.failed_over = Some(micros());
        let mut shell = Command::new("sh");
        shell.args(["-c", command, "failover", &self.cast.lock(self.scene)]);
        // What it says would mix with what is told here.
        let ran = shell.stdin(Stdio::null()).output()?;
        if !ran.status.success() {
            let why = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            return Err(Failure::own(format!("the failover failed ({}): {why}", ran.status)));
        }
        let said = format!("the store's server fails: {sold} are sold");
        self.progress.incident(&said, "another server takes over")
    }

    /// Stops or kills the process whose worker stands in its critical section.
    fn strike(&mut self, process: u32, parked: Parked) -> Result<(), Failure> {
        let who = process + 1;
        std::thread::sleep(INSIDE);
        let said = if self.scene == Scene::Killed {
            self.team.kill(process)?;
            self.left.insert(process);
            format!("kill -9 to process {who}, inside its sale")
        } else {
            self.stop_cleanly(process)?;
            format!(
                "SIGSTOP to process {who}, inside its sale: it has read a stock of {}",
                parked.stock
            )
        };
        let stopped = micros();
        self.incident = Some(Incident { process, parked, stopped, resumed: None, woke: None });
        self.progress.incident(&said, "its lease runs out")
    }

    /// Stops a process, but not in the middle of a write to the lock's store: in an embedded
    /// store that would stop everybody, and is another story.
    fn stop_cleanly(&self, process: u32) -> Result<(), Failure> {
        let probe = self.cast.probe.lock(format!("{}/probe", self.cast.prefix))?;
        for _ in 0..20 {
            self.team.stop(process)?;
            match probe.acquire_timeout(PROBE) {
                Ok(guard) => return Ok(guard.release()?),
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
            self.team.resume(process)?;
        }
        Err(Failure::own("the store does not answer; look at it with fencelock doctor"))
    }

    /// Lets the paused holder go on when enough others have sold under later tokens.
    fn wake_in_time(&mut self) -> Result<(), Failure> {
        let Some(incident) = &mut self.incident else { return Ok(()) };
        if self.scene == Scene::Killed || incident.resumed.is_some() {
            return Ok(());
        }
        let later = |visit: &Visit| visit.token.is_some_and(|token| token > incident.parked.token);
        let sold = self.visits.iter().filter(|(_, visit)| visit.deed == Deed::Sold && later(visit));
        let count = sold.count();
        if count < SOLD_MEANWHILE {
            return Ok(());
        }
        let process = incident.process;
        let resumed = micros();
        incident.resumed = Some(resumed);
        let slept = Duration::from_micros(resumed - incident.stopped);
        self.team.tell(process, &Order::GoOn)?;
        self.team.resume(process)?;
        let slept = crate::span::show(slept);
        self.progress
            .incident(&format!("SIGCONT after {slept}: others have sold {count} meanwhile"), "")
    }
}

fn unexpected(process: u32, message: &Message) -> Failure {
    Failure::own(match message {
        Message::Gone => format!("process {} of the demo ended early", process + 1),
        Message::Report(report) => {
            format!("process {} of the demo said {report:?} out of turn", process + 1)
        }
    })
}
