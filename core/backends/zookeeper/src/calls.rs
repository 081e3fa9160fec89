//! The machine's calls as calls of the client crate.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use fencelock_engine::zookeeper::{Change, NodeKind, Stat, ZkError, ZkOp, ZkReply, ZkWrite};
use zookeeper_client as zk;

use crate::options::Acl;
use crate::watches::{Kind, Left};

/// A call's answer, and the watch that it left.
pub(crate) type Answer = (Result<ZkReply, ZkError>, Option<Left>);

/// A call under way. It leaves with the first poll.
pub(crate) type Flight = Pin<Box<dyn Future<Output = Answer> + Send>>;

pub(crate) fn fly(client: Arc<zk::Client>, acl: Acl, op: ZkOp) -> Flight {
    match op {
        ZkOp::Create { path, data, kind } => Box::pin(async move {
            let created = client.create(&path, &data, &options(kind, acl)).await;
            let result = created.map(|(stat, sequence)| {
                // The server counts in 32 bits and writes what is past them as negative.
                let numbered = kind == NodeKind::EphemeralSequential;
                let path = if numbered { format!("{path}{sequence}") } else { path };
                ZkReply::Created { path, stat: read_stat(&stat) }
            });
            plain(result)
        }),
        ZkOp::Delete { path } => {
            Box::pin(async move { plain(client.delete(&path, None).await.map(|()| ZkReply::Done)) })
        }
        ZkOp::Exists { path, watch: false } => Box::pin(async move {
            let stat = client.check_stat(&path).await;
            plain(stat.map(|stat| ZkReply::Exists(stat.as_ref().map(read_stat))))
        }),
        ZkOp::Exists { path, watch: true } => Box::pin(async move {
            match client.check_and_watch_stat(&path).await {
                Ok((stat, watcher)) => {
                    let left = Left::new(path, Kind::Node, watcher.changed());
                    (Ok(ZkReply::Exists(stat.as_ref().map(read_stat))), Some(left))
                }
                Err(error) => (Err(read_error(&error)), None),
            }
        }),
        ZkOp::GetData { path, watch: false } => Box::pin(async move {
            let got = client.get_data(&path).await;
            plain(got.map(|(data, stat)| ZkReply::Data { data, stat: read_stat(&stat) }))
        }),
        ZkOp::GetData { path, watch: true } => Box::pin(async move {
            match client.get_and_watch_data(&path).await {
                Ok((data, stat, watcher)) => {
                    let left = Left::new(path, Kind::Node, watcher.changed());
                    (Ok(ZkReply::Data { data, stat: read_stat(&stat) }), Some(left))
                }
                Err(error) => (Err(read_error(&error)), None),
            }
        }),
        ZkOp::Children { path, watch: false } => Box::pin(async move {
            let got = client.get_children(&path).await;
            plain(got.map(|(names, stat)| ZkReply::Children { names, stat: read_stat(&stat) }))
        }),
        ZkOp::Children { path, watch: true } => Box::pin(async move {
            match client.get_and_watch_children(&path).await {
                Ok((names, stat, watcher)) => {
                    let left = Left::new(path, Kind::Children, watcher.changed());
                    (Ok(ZkReply::Children { names, stat: read_stat(&stat) }), Some(left))
                }
                Err(error) => (Err(read_error(&error)), None),
            }
        }),
        ZkOp::Set { path, data } => Box::pin(async move {
            plain(client.set_data(&path, &data, None).await.map(|_| ZkReply::Done))
        }),
        ZkOp::Multi(parts) => Box::pin(async move { multi(&client, acl, parts).await }),
        ZkOp::Sync { path } => {
            Box::pin(async move { plain(client.sync(&path).await.map(|()| ZkReply::Done)) })
        }
    }
}

fn options(kind: NodeKind, acl: Acl) -> zk::CreateOptions<'static> {
    let mode = match kind {
        NodeKind::Container => zk::CreateMode::Container,
        NodeKind::Ephemeral => zk::CreateMode::Ephemeral,
        NodeKind::EphemeralSequential => zk::CreateMode::EphemeralSequential,
    };
    mode.with_acls(match acl {
        Acl::Open => zk::Acls::anyone_all(),
        Acl::Creator => zk::Acls::creator_all(),
    })
}

async fn multi(client: &zk::Client, acl: Acl, parts: Vec<ZkWrite>) -> Answer {
    let mut writer = client.new_multi_writer();
    for part in parts {
        let added = match part {
            ZkWrite::Create { path, data, kind } => {
                writer.add_create(&path, &data, &options(kind, acl))
            }
            ZkWrite::Check { path } => writer.add_check_version(&path, -1),
            ZkWrite::CheckVersion { path, version } => writer.add_check_version(&path, version),
            ZkWrite::Set { path, data } => writer.add_set_data(&path, &data, None),
            ZkWrite::Delete { path } => writer.add_delete(&path, None),
        };
        if let Err(error) = added {
            return (Err(read_error(&error)), None);
        }
    }
    let result = match writer.commit().await {
        Ok(results) => Ok(made(results)),
        Err(zk::MultiWriteError::OperationFailed { index, source }) => {
            Err(ZkError::At(index, Box::new(read_error(&source))))
        }
        Err(zk::MultiWriteError::RequestFailed { source }) => Err(read_error(&source)),
    };
    (result, None)
}

fn made(results: Vec<zk::MultiWriteResult>) -> ZkReply {
    let made: Vec<(String, Stat)> = results
        .into_iter()
        .filter_map(|result| match result {
            // Some servers tell no stat of what a multi makes.
            zk::MultiWriteResult::Create { path, stat } => {
                let stat = if stat.is_invalid() { Stat::default() } else { read_stat(&stat) };
                Some((path, stat))
            }
            _ => None,
        })
        .collect();
    if made.is_empty() { ZkReply::Done } else { ZkReply::Made(made) }
}

fn plain(result: Result<ZkReply, zk::Error>) -> Answer {
    (result.map_err(|error| read_error(&error)), None)
}

fn read_stat(stat: &zk::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        pzxid: stat.pzxid,
        version: stat.version,
        ephemeral_owner: stat.ephemeral_owner,
        num_children: stat.num_children,
    }
}

fn read_error(error: &zk::Error) -> ZkError {
    match error {
        zk::Error::NoNode => ZkError::NoNode,
        zk::Error::NodeExists => ZkError::NodeExists,
        zk::Error::BadVersion => ZkError::BadVersion,
        zk::Error::NotEmpty => ZkError::NotEmpty,
        zk::Error::NoChildrenForEphemerals => ZkError::NoChildrenForEphemerals,
        zk::Error::NoAuth => ZkError::NoAuth,
        zk::Error::InvalidAcl => ZkError::InvalidAcl,
        zk::Error::NotReadOnly => ZkError::NotReadOnly,
        zk::Error::QuotaExceeded => ZkError::Quota,
        zk::Error::Throttled => ZkError::Throttled,
        zk::Error::Unimplemented => ZkError::Unimplemented,
        zk::Error::SessionExpired => ZkError::SessionExpired,
        zk::Error::SessionMoved => ZkError::SessionMoved,
        zk::Error::AuthFailed => ZkError::AuthFailed,
        zk::Error::BadArguments(_)
        | zk::Error::UnexpectedErrorCode(_)
        | zk::Error::MarshallingError
        | zk::Error::RuntimeInconsistent => ZkError::Other(error.to_string()),
        // Also what the crate says of a connection that broke in its own words: the call may have
        // been carried out.
        _ => ZkError::ConnectionLoss,
    }
}

/// What a watch tells; `None` for the end of the session.
pub(crate) fn read_change(event: zk::EventType) -> Option<Change> {
    match event {
        zk::EventType::NodeCreated => Some(Change::Created),
        zk::EventType::NodeDeleted => Some(Change::Deleted),
        zk::EventType::NodeDataChanged => Some(Change::Data),
        zk::EventType::NodeChildrenChanged => Some(Change::Children),
        zk::EventType::Session => None,
    }
}
