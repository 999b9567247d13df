//! The two ends of a connection, without sockets and clocks: quinn's own endpoints and connections,
//! and the applications on them.
//!
//! Randomness: quinn's own generators (packet numbers that it skips, a transport parameter of random length,
//! greased bits, times of key changes) and connection IDs come from the run's seed. The rest fills fields of
//! a fixed size that nothing else depends on: TLS's random values, keys and signatures (X25519, Ed25519), the
//! order of TLS's extensions, stateless reset tokens. quinn only looks things up in its randomised hash maps,
//! and never iterates over them.

use crate::{
    Calls, Failed, Terms,
    tls::{SERVER_NAME, Tls},
};
use bytes::{Bytes, BytesMut};
use knee_model::{HostError, Random, RecordSpec};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    Incoming, QlogStream, ReadableError, ServerConfig, StreamEvent, StreamId, VarInt, WriteError,
};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Length of connection IDs, bytes: quinn's own.
const ID_BYTES: usize = 8;
/// The application's data repeat after this many bytes: not a multiple of the data of a packet.
const PERIOD_BYTES: u64 = 262_139;
/// The application is so far ahead of the sent data, headers and repetitions included, that it is never the
/// limit.
const AHEAD_BYTES: u64 = 1 << 19;
/// The window is filled in about this many writes.
const WRITES_IN_WINDOW: u64 = 64;
/// Bytes that have no end.
const ENDLESS: u64 = u64::MAX;

/// Data whose bytes depend on their position.
static PATTERN: LazyLock<Bytes> = LazyLock::new(|| {
    let mut random = Random::stream(0, "pattern", 0);
    (0..PERIOD_BYTES).map(|_| random.bits32() as u8).collect()
});

/// Addresses of the two ends, as far as they know.
pub(crate) const SENDER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), 10_000);
pub(crate) const RECEIVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)), 10_000);

/// Connection IDs from the run's seed.
struct Ids(Random);

impl Ids {
    fn id(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.bits64().to_be_bytes())
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.id()
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

fn endpoint(terms: &Terms, server: Option<Arc<ServerConfig>>, mut random: Random) -> Endpoint {
    let mut config = EndpointConfig::default();
    let mut seed = [0; 32];
    seed.fill_with(|| random.bits32() as u8);
    config.rng_seed(Some(seed)).cid_generator(move || Box::new(Ids(random.clone())));
    // quinn does everything that the terms allow: 1200 to 65527.
    let _ = config.max_udp_payload_size(terms.payload_bytes());
    Endpoint::new(Arc::new(config), server, false, None)
}

/// Sends a datagram, with the ECN field that it is to have.
pub type Out<'a> = dyn FnMut(&[u8], Option<EcnCodepoint>) + 'a;

/// One end: quinn's endpoint with its one connection.
struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    remote: SocketAddr,
    buffer: Vec<u8>,
}

/// A report of a connection that is not about a stream.
enum News {
    Connected,
    Stream(StreamEvent),
}

impl Peer {
    /// Takes in a datagram; returns the request if it opens a connection.
    fn receive(
        &mut self,
        now: Instant,
        datagram: BytesMut,
        ecn: Option<EcnCodepoint>,
        out: &mut Out<'_>,
    ) -> Option<Incoming> {
        self.buffer.clear();
        match self.endpoint.handle(now, self.remote, None, ecn, datagram, &mut self.buffer)? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
                None
            }
            DatagramEvent::NewConnection(incoming) => Some(incoming),
            DatagramEvent::Response(transmit) => {
                out(&self.buffer[..transmit.size], transmit.ecn);
                None
            }
        }
    }

    /// Exchanges the events of the connection and its endpoint; returns the news. A regular end is no news.
    fn news(&mut self) -> Result<Option<News>, Failed> {
        let Some((handle, connection)) = &mut self.connection else { return Ok(None) };
        while let Some(event) = connection.poll_endpoint_events() {
            let drained = event.is_drained();
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
            if drained {
                self.connection = None;
                return Ok(None);
            }
        }
        loop {
            return match connection.poll() {
                None => Ok(None),
                Some(Event::Connected) => Ok(Some(News::Connected)),
                Some(Event::Stream(event)) => Ok(Some(News::Stream(event))),
                Some(Event::ConnectionLost {
                    reason: ConnectionError::LocallyClosed | ConnectionError::ApplicationClosed(_),
                }) => Ok(None),
                Some(Event::ConnectionLost { reason }) => Err(Failed::new(reason)),
                Some(_) => continue,
            };
        }
    }

    /// Sends a datagram if one may be sent now; its size.
    fn transmit(&mut self, now: Instant, out: &mut Out<'_>) -> Option<usize> {
        let (_, connection) = self.connection.as_mut()?;
        self.buffer.clear();
        let transmit = connection.poll_transmit(now, 1, &mut self.buffer)?;
        out(&self.buffer[..transmit.size], transmit.ecn);
        Some(transmit.size)
    }

    /// Returns whether a timer was due.
    fn timers(&mut self, now: Instant) -> bool {
        let Some((_, connection)) = &mut self.connection else { return false };
        match connection.poll_timeout() {
            Some(due) if due <= now => {
                connection.handle_timeout(now);
                true
            }
            _ => false,
        }
    }

    fn due(&mut self) -> Option<Instant> {
        self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
    }
}

/// The end that sends: it opens the connection, and a stream on it.
pub struct Sender {
    peer: Peer,
    stream: Option<StreamId>,
    /// The application writes at most so much at once: quinn keeps the room of all that was written
    /// at once until all of it is acknowledged.
    write_bytes: u64,
    /// Bytes that the application still has for the stream, and bytes that the stream has taken.
    backlog_bytes: u64,
    written_bytes: u64,
    sent_bytes: u64,
    closed: bool,
}

/// The end that receives: it reads whatever comes.
pub struct Receiver {
    peer: Peer,
    stream: Option<StreamId>,
    /// Data that arrived, up to the first that did not.
    pub delivered_bytes: u64,
    /// Data that arrived beyond that: the end of each piece by its beginning.
    ahead: BTreeMap<u64, u64>,
}

/// Makes the ends of flow `index` of a run.
pub struct Maker {
    tls: Tls,
    seed: u64,
    record: RecordSpec,
}

impl Maker {
    /// For a run with `seed` that records `record`.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(seed: u64, record: &RecordSpec) -> Result<Self, HostError> {
        Ok(Self { tls: Tls::new()?, seed, record: record.clone() })
    }

    fn random(&self, what: &str, index: usize) -> Random {
        Random::stream(self.seed, what, index as u64)
    }

    /// Returns the sender, which begins to connect to `remote` at `now` of a run that began at `zero`; and
    /// the future calls of its algorithm.
    ///
    /// # Errors
    /// A refusal by quinn.
    pub fn sender(
        &self,
        terms: &Terms,
        index: usize,
        [zero, now]: [Instant; 2],
        remote: SocketAddr,
        qlog: Option<QlogStream>,
    ) -> Result<(Sender, Calls), Failed> {
        let calls = terms.calls(&self.record);
        let seed = self.random("algorithm", index).bits64();
        let mut transport = terms.sender(seed, zero, &calls);
        transport.qlog_stream(qlog);
        let mut config = ClientConfig::new(self.tls.client.clone());
        let ids = Mutex::new(Ids(self.random("first connection id", index)));
        config.transport_config(Arc::new(transport)).initial_dst_cid_provider(Arc::new(
            move || ids.lock().unwrap_or_else(PoisonError::into_inner).id(),
        ));
        let mut endpoint = endpoint(terms, None, self.random("quic sender", index));
        let connection = endpoint.connect(now, config, remote, SERVER_NAME).map_err(Failed::new)?;
        let peer = Peer { endpoint, connection: Some(connection), remote, buffer: Vec::new() };
        let sender = Sender {
            peer,
            stream: None,
            write_bytes: (terms.window_bytes() / WRITES_IN_WINDOW).clamp(1, PERIOD_BYTES),
            backlog_bytes: 0,
            written_bytes: 0,
            sent_bytes: 0,
            closed: false,
        };
        Ok((sender, calls))
    }

    /// The receiver of a sender at `remote`.
    pub fn receiver(&self, terms: &Terms, index: usize, remote: SocketAddr) -> Receiver {
        let mut config = ServerConfig::with_crypto(self.tls.server.clone());
        config.transport_config(Arc::new(terms.receiver())).migration(false);
        // No token for a next connection: there is none, and its frame would come at random.
        config.validation_token.sent(0);
        let random = self.random("quic receiver", index);
        let endpoint = endpoint(terms, Some(Arc::new(config)), random);
        let peer = Peer { endpoint, connection: None, remote, buffer: Vec::new() };
        Receiver { peer, stream: None, delivered_bytes: 0, ahead: BTreeMap::new() }
    }
}

impl Sender {
    /// The application has this much more; none: no end of it.
    pub fn write(&mut self, bytes: Option<u64>) {
        self.backlog_bytes = match bytes {
            Some(bytes) if self.backlog_bytes != ENDLESS => {
                self.backlog_bytes.saturating_add(bytes)
            }
            _ => ENDLESS,
        };
    }

    /// Ends the connection: unsent data are never sent.
    pub fn close(&mut self, now: Instant) {
        self.closed = true;
        if let Some((_, connection)) = &mut self.peer.connection {
            connection.close(now, VarInt::from_u32(0), Bytes::new());
        }
    }

    /// A datagram arrives with this ECN field. [`Self::drive`] comes after it.
    pub fn receive(
        &mut self,
        now: Instant,
        datagram: BytesMut,
        ecn: Option<EcnCodepoint>,
        out: &mut Out<'_>,
    ) {
        if let Some(incoming) = self.peer.receive(now, datagram, ecn, out) {
            self.peer.endpoint.ignore(incoming);
        }
    }

    /// Does everything that is due now: sends datagrams through `out`.
    ///
    /// # Errors
    /// The connection failed.
    pub fn drive(&mut self, now: Instant, out: &mut Out<'_>) -> Result<(), Failed> {
        loop {
            while let Some(news) = self.peer.news()? {
                if let (News::Connected, Some((_, connection))) = (news, &mut self.peer.connection)
                {
                    self.stream = connection.streams().open(Dir::Uni);
                }
            }
            loop {
                self.feed()?;
                let Some(bytes) = self.peer.transmit(now, out) else { break };
                self.sent_bytes += bytes as u64;
            }
            if !self.peer.timers(now) {
                return Ok(());
            }
        }
    }

    /// Gives the stream data, as far ahead of the network as it ever needs.
    fn feed(&mut self) -> Result<(), Failed> {
        let (Some(id), Some((_, connection)), false) =
            (self.stream, &mut self.peer.connection, self.closed)
        else {
            return Ok(());
        };
        while self.backlog_bytes > 0 && self.written_bytes < self.sent_bytes + AHEAD_BYTES {
            let from = self.written_bytes % PERIOD_BYTES;
            let len = (PERIOD_BYTES - from).min(self.backlog_bytes).min(self.write_bytes);
            let mut data = [PATTERN.slice(from as usize..(from + len) as usize)];
            match connection.send_stream(id).write_chunks(&mut data) {
                Ok(written) => {
                    self.written_bytes += written.bytes as u64;
                    if self.backlog_bytes != ENDLESS {
                        self.backlog_bytes -= written.bytes as u64;
                    }
                }
                Err(WriteError::Blocked) => break,
                Err(error) => return Err(Failed::new(error)),
            }
        }
        Ok(())
    }

    /// Returns the time at which [`Self::drive`] is next due, if nothing arrives.
    pub fn due(&mut self) -> Option<Instant> {
        self.peer.due()
    }

    /// Packets that quinn took for lost: their data were sent again.
    pub fn lost_pkts(&self) -> u64 {
        self.peer.connection.as_ref().map_or(0, |(_, c)| c.stats().path.lost_packets)
    }
}

impl Receiver {
    /// A datagram arrives with this ECN field. [`Self::drive`] comes after it.
    ///
    /// # Errors
    /// It opens no connection, though it should.
    pub fn receive(
        &mut self,
        now: Instant,
        datagram: BytesMut,
        ecn: Option<EcnCodepoint>,
        out: &mut Out<'_>,
    ) -> Result<(), Failed> {
        let Some(incoming) = self.peer.receive(now, datagram, ecn, out) else { return Ok(()) };
        if self.peer.connection.is_some() {
            self.peer.endpoint.ignore(incoming);
            return Ok(());
        }
        self.peer.buffer.clear();
        let accepted = self.peer.endpoint.accept(incoming, now, &mut self.peer.buffer, None);
        self.peer.connection = Some(accepted.map_err(|error| Failed::new(error.cause))?);
        Ok(())
    }

    /// Does everything that is due now: sends datagrams through `out`.
    ///
    /// # Errors
    /// The connection failed, or other data came than were sent.
    pub fn drive(&mut self, now: Instant, out: &mut Out<'_>) -> Result<(), Failed> {
        loop {
            let mut readable = false;
            while let Some(news) = self.peer.news()? {
                match (news, &mut self.peer.connection) {
                    (News::Stream(StreamEvent::Opened { dir }), Some((_, connection))) => {
                        self.stream = self.stream.or(connection.streams().accept(dir));
                        readable = true;
                    }
                    (News::Stream(StreamEvent::Readable { .. }), _) => readable = true,
                    _ => {}
                }
            }
            if readable {
                self.read()?;
            }
            while self.peer.transmit(now, out).is_some() {}
            if !self.peer.timers(now) {
                return Ok(());
            }
        }
    }

    /// Reads all available data, in whatever order: quinn keeps at most 1024 pieces that an ordered reader
    /// leaves, and ends the connection beyond that.
    fn read(&mut self) -> Result<(), Failed> {
        let (Some(id), Some((_, connection))) = (self.stream, &mut self.peer.connection) else {
            return Ok(());
        };
        let mut stream = connection.recv_stream(id);
        let mut chunks = match stream.read(false) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream) => return Ok(()),
            Err(error) => return Err(Failed::new(error)),
        };
        // Until no more is there, or the stream has ended.
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            if !is_pattern(chunk.offset, &chunk.bytes) {
                return Err(Failed::new("other data arrived than were sent"));
            }
            if !chunk.bytes.is_empty() {
                self.ahead.insert(chunk.offset, chunk.offset + chunk.bytes.len() as u64);
            }
        }
        while let Some(end) = self.ahead.remove(&self.delivered_bytes) {
            self.delivered_bytes = end;
        }
        // Its credit goes out with the next packet, which is polled for anyway.
        let _ = chunks.finalize();
        Ok(())
    }

    /// Returns the time at which [`Self::drive`] is next due, if nothing arrives.
    pub fn due(&mut self) -> Option<Instant> {
        self.peer.due()
    }
}

/// Returns whether these are the application's bytes from `at` on.
fn is_pattern(at: u64, mut bytes: &[u8]) -> bool {
    let mut from = (at % PERIOD_BYTES) as usize;
    while !bytes.is_empty() {
        let len = bytes.len().min(PATTERN.len() - from);
        if bytes[..len] != PATTERN[from..from + len] {
            return false;
        }
        (bytes, from) = (&bytes[len..], 0);
    }
    true
}
