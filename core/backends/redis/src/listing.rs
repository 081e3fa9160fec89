//! Naming the locks of all servers of a cluster.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::redis::session::NoSession;
use fencelock_engine::redis::{Codec, Command, ListStep, Listing, Node};
use fencelock_engine::reply::{Failure, Refusal, RefusalKind, Reply};
use fencelock_engine::request::Op;

use crate::lookup;
use crate::options::Options;

/// Names the locks of all these servers, one after the other. It takes as long as it needs while they go on
/// answering.
pub(crate) async fn of_all(
    options: Arc<Options>,
    codec: Codec,
    op: Op,
    nodes: Vec<Node>,
) -> Result<Reply, Failure> {
    let mut listing = Listing::default();
    let mut reply = None;
    for node in &nodes {
        listing.go_on();
        let said = of_one(&options, &codec, &op, node, &mut listing).await;
        reply = Some(said.map_err(|why| match why {
            Stopped::Failed(failure) => failure,
            Stopped::No(why) => refused(node, &why),
        })?);
    }
    reply.ok_or(Failure::NotSent)
}

enum Stopped {
    Failed(Failure),
    No(NoSession),
}

async fn of_one(
    options: &Options,
    codec: &Codec,
    op: &Op,
    node: &Node,
    listing: &mut Listing,
) -> Result<Reply, Stopped> {
    let limit = options.connect_timeout;
    let mut talk = within(limit, lookup::talk(options, node)).await?;
    let mut command = codec.encode(op);
    loop {
        let Command::Plain(words) = &command else { return Err(Stopped::Failed(Failure::NotSent)) };
        let value = within(limit, talk.ask(words)).await?;
        match codec.list_step(op, listing, value).map_err(Stopped::Failed)? {
            ListStep::Send(next) => command = next,
            ListStep::Done(reply) => return Ok(reply),
        }
    }
}

async fn within<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, NoSession>>,
) -> Result<T, Stopped> {
    let late = || NoSession::Later(format!("no answer within {limit:?}"));
    tokio::time::timeout(limit, step).await.unwrap_or_else(|_| Err(late())).map_err(Stopped::No)
}

fn refused(node: &Node, why: &NoSession) -> Failure {
    let (kind, reason) = match why {
        NoSession::Later(reason) => (RefusalKind::Retry, reason.as_str()),
        NoSession::Misconfigured(error) => (RefusalKind::Misconfigured, error.message()),
    };
    Failure::Refused(Refusal { kind, message: format!("{node} does not name its locks: {reason}") })
}
