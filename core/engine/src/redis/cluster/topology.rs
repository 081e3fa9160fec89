//! What one server says of who has which slots.

use crate::redis::Value;
use crate::redis::cluster::slot::SLOTS;
use crate::redis::node::Node;
use crate::redis::session::{self, NoSession};
use crate::secret::Secrets;

/// What a server is asked, in this order.
pub const QUESTIONS: [[&str; 2]; 2] = [["CLUSTER", "SLOTS"], ["CLUSTER", "INFO"]];

/// Slots that follow each other, and whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first of them.
    pub first: u16,
    /// The last.
    pub last: u16,
    /// Their master.
    pub node: Node,
}

/// What one server says of who has which slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Slots that nobody serves are in none.
    pub ranges: Vec<Range>,
    /// Whether it thinks that the cluster serves: one that is cut off from most of the others does not.
    pub sound: bool,
}

impl Topology {
    /// Reads the answers to [`QUESTIONS`] of the server at `said`.
    ///
    /// # Errors
    /// When there is no map in them.
    pub fn read(
        said: &Node,
        slots: &Value,
        info: &Value,
        secrets: &Secrets,
    ) -> Result<Topology, NoSession> {
        if let Value::Error(line) = slots
            && line.contains("cluster support disabled")
        {
            return Err(NoSession::misconfigured(format!(
                "{said} is a Redis server, but not one of a cluster: name it as redis://"
            )));
        }
        let slots = session::refuse("CLUSTER SLOTS", slots.clone(), secrets)?;
        let ranges =
            slots.array().and_then(|ranges| ranges.iter().map(|it| range(said, it)).collect());
        let ranges = ranges.ok_or_else(|| {
            NoSession::Later(format!("what {said} says of its slots was not understood"))
        })?;
        // Who may not ask this believes the map as it stands.
        let sound = !info.text().is_some_and(|text| text.contains("cluster_state:fail"));
        Ok(Topology { ranges, sound })
    }
}

fn range(said: &Node, value: &Value) -> Option<Range> {
    let [first, last, master, ..] = value.array()? else { return None };
    let slot = |value: &Value| value.number().and_then(|it| u16::try_from(it).ok());
    let (first, last) = (slot(first)?, slot(last)?);
    let master = master.array()?;
    let [host, port, ..] = master else { return None };
    let host = match host.text() {
        // It is to be named by a host name, and has none.
        Some("?") => address(master).unwrap_or(&said.host),
        Some("") | None => said.host.as_str(),
        Some(host) => host,
    };
    let port = slot(port).filter(|port| *port != 0)?;
    let node = Node { host: host.to_owned(), port };
    (first <= last && last < SLOTS).then_some(Range { first, last, node })
}

/// A server's IP address, where that is told beside its name.
fn address(server: &[Value]) -> Option<&str> {
    let told = server.get(3)?.array()?;
    let mut pairs = told.chunks_exact(2);
    pairs.find(|pair| pair[0].text() == Some("ip"))?[1].text().filter(|ip| !ip.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }

    fn said() -> Node {
        Node { host: "10.0.0.1".to_owned(), port: 7 }
    }

    fn read(slots: &Value, info: &Value) -> Result<Topology, NoSession> {
        Topology::read(&said(), slots, info, &Secrets::default())
    }

    fn one(host: Value) -> Value {
        let master = Value::Array(vec![host, Value::Int(7), bytes("id"), Value::Array(Vec::new())]);
        let replica = Value::Array(vec![bytes("other"), Value::Int(8), bytes("id2")]);
        Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(99), master, replica])])
    }

    #[test]
    fn the_master_of_each_range_is_read_and_an_empty_host_is_who_answered() {
        let info = bytes("cluster_state:ok\r\ncluster_slots_assigned:100\r\n");
        for (host, shown) in
            [(bytes("h"), "h:7"), (bytes(""), "10.0.0.1:7"), (Value::Nil, "10.0.0.1:7")]
        {
            let topology = read(&one(host), &info).unwrap();
            assert!(topology.sound);
            let [range] = &topology.ranges[..] else { panic!("{topology:?}") };
            assert_eq!((range.first, range.last, range.node.to_string().as_str()), (0, 99, shown));
        }
    }

    /// With `cluster-preferred-endpoint-type hostname`, of a master that was given none.
    #[test]
    fn a_master_without_a_name_is_reached_by_its_address() {
        let known = |ip: Value| Value::Array(vec![bytes("ip"), ip]);
        for (ip, shown) in [(bytes("10.0.0.9"), "10.0.0.9:7"), (bytes(""), "10.0.0.1:7")] {
            let master = Value::Array(vec![bytes("?"), Value::Int(7), bytes("id"), known(ip)]);
            let slots = Value::Array(vec![Value::Int(0), Value::Int(99), master]);
            let topology = read(&Value::Array(vec![slots]), &Value::Nil).unwrap();
            assert_eq!(topology.ranges[0].node.to_string(), shown);
        }
    }

    #[test]
    fn who_is_cut_off_says_so_and_who_may_not_ask_believes_the_map() {
        let sound = |info| read(&one(bytes("h")), &info).unwrap().sound;
        assert!(!sound(bytes("cluster_enabled:1\r\ncluster_state:fail\r\n")));
        assert!(sound(Value::Error("NOPERM".to_owned())));
    }

    #[test]
    fn what_is_no_map_is_said_so() {
        let alone = Value::Error("ERR This instance has cluster support disabled".to_owned());
        let error = read(&alone, &alone).unwrap_err();
        assert!(matches!(error, NoSession::Misconfigured(_)), "{error:?}");
        for wrong in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Error("LOADING".to_owned()),
            Value::Array(vec![Value::Array(vec![
                Value::Int(5),
                Value::Int(16_384),
                Value::Array(vec![bytes("h"), Value::Int(7)]),
            ])]),
        ] {
            let error = read(&wrong, &Value::Nil).unwrap_err();
            assert!(matches!(error, NoSession::Later(_)), "{error:?}");
        }
    }
}
