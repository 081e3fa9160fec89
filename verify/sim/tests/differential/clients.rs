//! Who takes part: clients with and without a subscription, under one prefix.

use fencelock_engine::id::ClientId;
use fencelock_engine::redis::{Codec, Inbox};
use fencelock_engine::store::Caller;

pub struct Client {
    pub id: ClientId,
    pub codec: Codec,
    pub polling: bool,
    pub subscribed: bool,
}

impl Client {
    pub fn new(number: u64) -> Client {
        let id = ClientId::new(number, &format!("client {number} é")).unwrap();
        let codec = Codec::new(id.clone(), "t*l:").unwrap();
        Client { id, codec, polling: false, subscribed: true }
    }

    pub fn set_polling(&mut self, polling: bool) {
        self.polling = polling;
        self.codec.set_inbox(if polling { Inbox::Polling } else { Inbox::Subscribed });
    }

    pub fn caller(&self) -> Caller {
        Caller { client: self.id.clone(), polling: self.polling }
    }
}
