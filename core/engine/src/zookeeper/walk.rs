//! Naming the locks below the chroot. The tree is walked in the order of the names, so that the
//! walk ends with the first ones, and remembers no more than it needs for them.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::Name;

/// How many nodes are listed at a time.
const TOGETHER: usize = 64;
/// So many children of a node are remembered. The others are asked for again in their turn: the
/// server always gives all of them.
pub(crate) const AHEAD: usize = 16_384;

/// A walk under way.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    prefix: String,
    limit: usize,
    /// The first locks so far.
    found: BTreeSet<Name>,
    /// What is to be looked at, by the first name that may lie there: nothing that lies below a
    /// node comes before it.
    ahead: BTreeMap<Name, Visit>,
}

/// A node whose children are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub path: String,
    /// Only the children from here on are news.
    from: Option<Name>,
}

impl Visit {
    /// A node, and all its children.
    pub(crate) fn all(path: String) -> Visit {
        Visit { path, from: None }
    }
}

impl Walk {
    pub(crate) fn new(prefix: String, limit: usize) -> Walk {
        Walk { prefix, limit, found: BTreeSet::new(), ahead: BTreeMap::new() }
    }

    /// A lock was found.
    pub(crate) fn found(&mut self, name: Name) {
        if name.as_str().starts_with(&*self.prefix) {
            self.found.insert(name);
        }
        if self.found.len() > self.limit {
            self.found.pop_last();
        }
    }

    /// The children of a node, with their paths.
    pub(crate) fn saw(&mut self, visit: &Visit, children: impl Iterator<Item = (Name, String)>) {
        let mut news: BTreeMap<Name, String> = children
            .filter(|(name, _)| visit.from.as_ref().is_none_or(|from| name >= from))
            .filter(|(name, _)| {
                let leads =
                    |prefix: &str| prefix.as_bytes().get(name.as_str().len()) == Some(&b'/');
                name.as_str().starts_with(&*self.prefix)
                    || self.prefix.starts_with(name.as_str()) && leads(&self.prefix)
            })
            .collect();
        let rest = news.keys().nth(AHEAD).cloned();
        if let Some(from) = rest {
            news.split_off(&from);
            let rest = Visit { path: visit.path.clone(), from: Some(from.clone()) };
            self.ahead.insert(from, rest);
        }
        self.ahead.extend(news.into_iter().map(|(name, path)| (name, Visit::all(path))));
    }

    /// What is to be asked for next; nothing when the first locks are found.
    pub(crate) fn next(&mut self) -> Vec<Visit> {
        if self.found.len() >= self.limit {
            match self.found.last() {
                Some(last) => drop(self.ahead.split_off(last)),
                None => self.ahead.clear(),
            }
        }
        let mut next = Vec::new();
        while next.len() < TOGETHER
            && let Some((_, visit)) = self.ahead.pop_first()
        {
            next.push(visit);
        }
        next
    }

    /// The locks, in the order of their names.
    pub(crate) fn names(self) -> Vec<Name> {
        self.found.into_iter().collect()
    }
}
