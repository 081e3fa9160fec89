//! Asking a server of a cluster which slots are whose.

use std::sync::Arc;

use fencelock_engine::redis::Node;
use fencelock_engine::redis::cluster::{QUESTIONS, Topology};
use fencelock_engine::redis::session::NoSession;

use crate::conversation::Conversation;
use crate::handshake;
use crate::options::Options;

/// A connection for questions to one server of several.
pub(crate) async fn talk(options: &Options, node: &Node) -> Result<Conversation, NoSession> {
    let login = handshake::login(options).await?;
    handshake::question(options, node, options.address.is_tls(), login).await
}

/// What the server says of the slots. A connection of its own: that of the requests may be silent.
pub(crate) async fn topology(options: Arc<Options>, node: Node) -> Result<Topology, NoSession> {
    let mut talk = talk(&options, &node).await?;
    let [slots, info] = QUESTIONS;
    let slots = talk.ask(&slots).await?;
    let info = talk.ask(&info).await?;
    Topology::read(&node, &slots, &info, &talk.greeted.secrets)
}
