//! One-shot watches, kept by the server that a client is connected to.

use std::collections::{BTreeMap, BTreeSet};

use crate::zookeeper::op::{Change, ConnId, Fired};
use crate::zookeeper::tree;

type Table = BTreeMap<String, BTreeSet<ConnId>>;

/// The watches of one server.
#[derive(Debug, Default)]
pub struct Watches {
    /// On a node's content, or its coming.
    data: Table,
    /// On a node's list of children.
    child: Table,
}

fn trigger(table: &mut Table, path: &str, change: Change, fired: &mut Vec<(ConnId, Fired)>) {
    for conn in table.remove(path).into_iter().flatten() {
        let it = (conn, Fired { path: path.to_owned(), change });
        // A client that watches a node in both ways hears once of its end.
        if change != Change::Deleted || !fired.contains(&it) {
            fired.push(it);
        }
    }
}

impl Watches {
    /// Watches a node's content, or its coming.
    pub fn watch_data(&mut self, conn: ConnId, path: &str) {
        self.data.entry(path.to_owned()).or_default().insert(conn);
    }

    /// Watches a node's list of children.
    pub fn watch_children(&mut self, conn: ConnId, path: &str) {
        self.child.entry(path.to_owned()).or_default().insert(conn);
    }

    /// A connection went, and its watches with it.
    pub fn drop_conn(&mut self, conn: ConnId) {
        for table in [&mut self.data, &mut self.child] {
            table.retain(|_, conns| {
                conns.remove(&conn);
                !conns.is_empty()
            });
        }
    }

    /// All connections went.
    pub fn clear(&mut self) {
        *self = Watches::default();
    }

    /// What a change of the tree sets off.
    pub fn fire(&mut self, change: &tree::Change) -> Vec<(ConnId, Fired)> {
        let mut fired = Vec::new();
        match change {
            tree::Change::Create { path, .. } => {
                trigger(&mut self.data, path, Change::Created, &mut fired);
                self.fire_parent(path, &mut fired);
            }
            tree::Change::Delete { path } => self.fire_deleted(path, &mut fired),
            tree::Change::CloseSession { nodes } => {
                for path in nodes {
                    self.fire_deleted(path, &mut fired);
                }
            }
            tree::Change::Set { path, .. } => {
                trigger(&mut self.data, path, Change::Data, &mut fired);
            }
            tree::Change::Check { .. } | tree::Change::OpenSession { .. } => {}
        }
        fired
    }

    fn fire_deleted(&mut self, path: &str, fired: &mut Vec<(ConnId, Fired)>) {
        trigger(&mut self.data, path, Change::Deleted, fired);
        trigger(&mut self.child, path, Change::Deleted, fired);
        self.fire_parent(path, fired);
    }

    fn fire_parent(&mut self, path: &str, fired: &mut Vec<(ConnId, Fired)>) {
        if let Some((parent, _)) = tree::split(path) {
            let parent = if parent.is_empty() { "/" } else { parent };
            trigger(&mut self.child, parent, Change::Children, fired);
        }
    }
}
