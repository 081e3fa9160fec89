//! Between the lock machine's words and the model's.

use fencelock_engine::zookeeper::{
    CallId, Change as Seen, Input, NodeKind, Stat as WireStat, ZkError, ZkOp, ZkReply, ZkWrite,
};

use crate::dice::Dice;
use crate::zookeeper::library::{Lost, Told};
use crate::zookeeper::op::{Answer, Change, Code, Failure, Mode, Op, Stat};

/// What the machine asks, as an operation.
pub fn op(op: &ZkOp) -> Op {
    match op {
        ZkOp::Create { path, data, kind } => {
            Op::Create { path: path.clone(), data: data.clone(), mode: mode(*kind) }
        }
        ZkOp::Delete { path } => Op::Delete { path: path.clone(), version: -1 },
        ZkOp::Exists { path, watch } => Op::Exists { path: path.clone(), watch: *watch },
        ZkOp::GetData { path, watch } => Op::Data { path: path.clone(), watch: *watch },
        ZkOp::Children { path, watch } => Op::Children { path: path.clone(), watch: *watch },
        ZkOp::Set { path, data } => Op::Set { path: path.clone(), data: data.clone(), version: -1 },
        ZkOp::Multi(writes) => Op::Multi(writes.iter().map(write).collect()),
        ZkOp::Sync { .. } => Op::Sync,
    }
}

fn mode(kind: NodeKind) -> Mode {
    match kind {
        NodeKind::Container => Mode::Container,
        NodeKind::Ephemeral => Mode::Ephemeral,
        NodeKind::EphemeralSequential => Mode::EphemeralSequential,
    }
}

fn write(write: &ZkWrite) -> Op {
    match write {
        ZkWrite::Create { path, data, kind } => {
            Op::Create { path: path.clone(), data: data.clone(), mode: mode(*kind) }
        }
        ZkWrite::Check { path } => Op::Check { path: path.clone(), version: -1 },
        ZkWrite::CheckVersion { path, version } => {
            Op::Check { path: path.clone(), version: *version }
        }
        ZkWrite::Set { path, data } => {
            Op::Set { path: path.clone(), data: data.clone(), version: -1 }
        }
        ZkWrite::Delete { path } => Op::Delete { path: path.clone(), version: -1 },
    }
}

/// What the library tells, as the machine's input. Children come in no order.
pub fn input(told: Told, dice: &mut Dice) -> Input {
    match told {
        Told::Connected { .. } | Told::Reattached => Input::Reattached,
        Told::Disconnected => Input::Disconnected { reason: "cut".to_owned() },
        Told::Unreachable => Input::Unreachable { reason: "nobody answers".to_owned() },
        Told::Expired => Input::Expired,
        Told::Result { token, result } => {
            Input::Result { call: CallId(token), result: reply(result, dice) }
        }
        Told::Fired(fired) => {
            let what = match fired.change {
                Change::Created => Seen::Created,
                Change::Deleted => Seen::Deleted,
                Change::Data => Seen::Data,
                Change::Children => Seen::Children,
            };
            Input::Fired { path: fired.path, what }
        }
    }
}

fn reply(result: Result<Answer, Lost>, dice: &mut Dice) -> Result<ZkReply, ZkError> {
    match result {
        Ok(Answer::Created { path, stat }) => Ok(ZkReply::Created { path, stat: wire(stat) }),
        Ok(Answer::Missing) => Ok(ZkReply::Exists(None)),
        Ok(Answer::Stat(stat)) => Ok(ZkReply::Exists(Some(wire(stat)))),
        Ok(Answer::Data { data, stat }) => Ok(ZkReply::Data { data, stat: wire(stat) }),
        Ok(Answer::Children { mut names, stat }) => {
            for at in (1..names.len()).rev() {
                names.swap(at, dice.below(at as u64 + 1) as usize);
            }
            Ok(ZkReply::Children { names, stat: wire(stat) })
        }
        Ok(Answer::Done | Answer::Set(_)) => Ok(ZkReply::Done),
        Ok(Answer::Multi(answers)) => {
            let made: Vec<(String, WireStat)> = answers
                .into_iter()
                .filter_map(|answer| match answer {
                    Answer::Created { path, stat } => Some((path, wire(stat))),
                    _ => None,
                })
                .collect();
            Ok(if made.is_empty() { ZkReply::Done } else { ZkReply::Made(made) })
        }
        Err(Lost::NotSent) => Err(ZkError::NotSent),
        Err(Lost::Failure(failure)) => Err(error(failure)),
        Err(Lost::Part(failure)) => Err(ZkError::At(failure.index, Box::new(error(failure)))),
    }
}

/// An error's name on the machine's side.
pub fn error(failure: Failure) -> ZkError {
    match failure.code {
        Code::ConnectionLoss => ZkError::ConnectionLoss,
        Code::NoNode => ZkError::NoNode,
        Code::NodeExists => ZkError::NodeExists,
        Code::NotEmpty => ZkError::NotEmpty,
        Code::NoChildrenForEphemerals => ZkError::NoChildrenForEphemerals,
        Code::SessionExpired => ZkError::SessionExpired,
        Code::SessionMoved => ZkError::SessionMoved,
        Code::NotReadOnly => ZkError::NotReadOnly,
        Code::BadVersion => ZkError::BadVersion,
        Code::BadArguments | Code::RuntimeInconsistency => {
            ZkError::Other(format!("{:?}", failure.code))
        }
    }
}

fn wire(stat: Stat) -> WireStat {
    WireStat {
        czxid: stat.czxid as i64,
        mzxid: stat.mzxid as i64,
        pzxid: stat.pzxid as i64,
        version: stat.version,
        ephemeral_owner: stat.owner as i64,
        num_children: stat.children as i32,
    }
}
