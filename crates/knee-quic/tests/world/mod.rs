//! Two QUIC endpoints of quinn and a path between them, in virtual time.

use bytes::BytesMut;
use knee_cc::{Call, CallRecord, Params, State};
use knee_quic::{CongestionControl, Observer};
use quinn::rustls;
use quinn_proto::{
    ClientConfig, Connection, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, MtuDiscoveryConfig, ReadError, ServerConfig, StreamId, Transmit,
    TransportConfig, VarInt, WriteError,
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Most datagrams in one go.
const BATCH: usize = 10;
/// Name in the server's certificate.
const NAME: &str = "knee.example";

/// One direction of the path.
#[derive(Clone, Copy)]
pub struct Link {
    pub delay: Duration,
    pub rate_bps: u64,
    pub queue_pkts: usize,
    pub loss: f64,
    /// Share of packets that come late by half a delay.
    pub late: f64,
    /// Largest payload of a datagram.
    pub mtu_bytes: usize,
    /// Queue length from which packets are marked instead.
    pub mark_from_pkts: usize,
}

impl Link {
    pub const PLAIN: Self = Self {
        delay: Duration::from_millis(20),
        rate_bps: 20_000_000,
        queue_pkts: 60,
        loss: 0.0,
        late: 0.0,
        mtu_bytes: 1472,
        mark_from_pkts: usize::MAX,
    };
}

/// Calls of all controllers of one configuration, checked as they come: the window within bounds,
/// each call the same when it is made again.
pub struct Checked {
    params: Params,
    seen: Mutex<Seen>,
}

#[derive(Default, Clone)]
pub struct Seen {
    states: BTreeMap<u64, State>,
    pub calls: Vec<(u64, CallRecord)>,
}

impl Observer for Checked {
    fn called(&self, controller: u64, call: &CallRecord) {
        let mut seen = self.seen.lock().expect("no observer panicked");
        for conn in [&call.before, &call.after] {
            assert!(conn.cwnd_pkts <= conn.cwnd_max_pkts, "{call:?}");
        }
        assert!(call.before.cwnd_pkts >= 2, "{call:?}");
        let known = seen.states.insert(controller, call.state);
        if let Some(state) = known.or((call.call == Call::Init).then(State::default)) {
            assert_eq!(call.again(&self.params, state).as_ref(), Some(call));
        }
        seen.calls.push((controller, *call));
    }
}

impl Seen {
    pub fn count(&self, is: impl Fn(&CallRecord) -> bool) -> usize {
        self.calls.iter().filter(|(_, call)| is(call)).count()
    }
}

/// One side's application: its data with their times, and its received data.
struct App {
    stream: Option<StreamId>,
    data: Vec<u8>,
    written: usize,
    /// Bytes that may be written, and the time from which on.
    release: Vec<(Instant, usize)>,
    finished: bool,
    received: Sha256,
    end: bool,
}

impl App {
    fn new(data: Vec<u8>, release: Vec<(Instant, usize)>) -> Self {
        Self {
            stream: None,
            data,
            written: 0,
            release,
            finished: false,
            received: Sha256::new(),
            end: false,
        }
    }

    fn released(&self, now: Instant) -> usize {
        let due = self.release.iter().filter(|(at, _)| *at <= now);
        due.map(|(_, bytes)| *bytes).max().unwrap_or(self.data.len()).min(self.data.len())
    }

    /// Reads and writes what can be.
    fn act(&mut self, conn: &mut Connection, now: Instant, is_client: bool) {
        if self.stream.is_none() {
            self.stream = match is_client {
                true => conn.streams().open(Dir::Bi),
                false => conn.streams().accept(Dir::Bi),
            };
        }
        let Some(stream) = self.stream else { return };
        let until = self.released(now);
        let mut send = conn.send_stream(stream);
        while self.written < until {
            match send.write(&self.data[self.written..until]) {
                Ok(bytes) => self.written += bytes,
                Err(WriteError::Blocked) => break,
                Err(e) => panic!("write: {e}"),
            }
        }
        if self.written == self.data.len() && !self.finished {
            send.finish().expect("is open");
            self.finished = true;
        }
        if self.end {
            return;
        }
        let mut receive = conn.recv_stream(stream);
        let mut chunks = match receive.read(true) {
            Ok(chunks) => chunks,
            // The server has not answered yet.
            Err(_) => return,
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received.update(&chunk.bytes),
                Ok(None) => {
                    self.end = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(e) => panic!("read: {e}"),
            }
        }
        let _ = chunks.finalize();
    }
}

struct End {
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Connection>,
    events: HashMap<ConnectionHandle, VecDeque<ConnectionEvent>>,
    accepted: Option<ConnectionHandle>,
}

impl End {
    fn new(server: Option<ServerConfig>, seed: u64) -> Self {
        let mut config = EndpointConfig::default();
        let mut bytes = [0; 32];
        SplitMix64::seed_from_u64(seed).fill_bytes(&mut bytes);
        config.rng_seed(Some(bytes));
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), true, None);
        Self { endpoint, connections: HashMap::new(), events: HashMap::new(), accepted: None }
    }
}

struct Datagram {
    to_server: bool,
    from: SocketAddr,
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
}

/// Endpoints, path, clock.
pub struct World {
    pub now: Instant,
    start: Instant,
    client: End,
    server: End,
    client_config: ClientConfig,
    server_addr: SocketAddr,
    pub client_addr: SocketAddr,
    /// To the server, to the client.
    pub links: [Link; 2],
    /// Times at which the transmitters will be free.
    free: [Instant; 2],
    waiting: BTreeMap<(Instant, u64), Datagram>,
    sent: u64,
    random: SplitMix64,
    /// Changes, with their times.
    changes: Vec<(Duration, Change)>,
    checked: Arc<Checked>,
}

type Change = fn(&mut World);

/// Result of a transfer.
#[derive(Debug)]
pub struct Outcome {
    pub took: Duration,
    pub used_0rtt: bool,
    pub client: quinn_proto::ConnectionStats,
    pub server: quinn_proto::ConnectionStats,
}

impl World {
    /// Both sides have this congestion control.
    pub fn new(algorithm: &str, link: Link, seed: u64) -> Self {
        Self::with(CongestionControl::new(algorithm).expect("exists"), link, seed, |_| ())
    }

    pub fn with(
        cc: CongestionControl,
        link: Link,
        seed: u64,
        change: impl FnOnce(&mut TransportConfig),
    ) -> Self {
        let now = Instant::now();
        let checked =
            Arc::new(Checked { params: cc.params().clone(), seen: Mutex::new(Seen::default()) });
        let cc = cc.seed(seed).clock_zero(now).observer(checked.clone());
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(Arc::new(cc))
            .mtu_discovery_config(Some(MtuDiscoveryConfig::default()))
            .stream_receive_window(VarInt::from_u32(1 << 22))
            .max_idle_timeout(Some(VarInt::from_u32(60_000).into()));
        change(&mut transport);
        let transport = Arc::new(transport);
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        let der = CertificateDer::from(made.cert);
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut server =
            ServerConfig::with_single_cert(vec![der.clone()], key.into()).expect("a configuration");
        server.transport_config(transport.clone());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der).expect("a certificate");
        let mut client_config =
            ClientConfig::with_root_certificates(Arc::new(roots)).expect("a configuration");
        client_config.transport_config(transport);
        Self {
            now,
            start: now,
            client: End::new(None, seed),
            server: End::new(Some(server), !seed),
            client_config,
            server_addr: (Ipv4Addr::new(192, 0, 2, 1), 443).into(),
            client_addr: (Ipv4Addr::new(198, 51, 100, 1), 50_000).into(),
            links: [link; 2],
            free: [now; 2],
            waiting: BTreeMap::new(),
            sent: 0,
            random: SplitMix64::seed_from_u64(seed),
            changes: Vec::new(),
            checked,
        }
    }

    /// Makes a change so long after the start.
    pub fn at(mut self, when: Duration, change: Change) -> Self {
        self.changes.push((when, change));
        self
    }

    pub fn seen(&self) -> Seen {
        self.checked.seen.lock().expect("no observer panicked").clone()
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.random.next_u64() as f64) < probability * 2f64.powi(64)
    }

    fn put(&mut self, to_server: bool, transmit: &Transmit, data: &[u8]) {
        let step = transmit.segment_size.unwrap_or(data.len().max(1));
        for data in data.chunks(step) {
            let way = usize::from(!to_server);
            let link = self.links[way];
            if data.len() > link.mtu_bytes || self.chance(link.loss) {
                continue;
            }
            let mut ecn = transmit.ecn;
            let bits = data.len() as u64 * 8;
            let time = Duration::from_nanos(bits * 1_000_000_000 / link.rate_bps);
            let wait = self.free[way].saturating_duration_since(self.now);
            let queue_pkts = wait.as_nanos() / time.as_nanos().max(1);
            if queue_pkts >= link.queue_pkts as u128 {
                continue;
            }
            if queue_pkts >= link.mark_from_pkts as u128 && ecn.is_some() {
                ecn = Some(EcnCodepoint::Ce);
            }
            let mut due = self.now + wait + time;
            self.free[way] = due;
            due += link.delay;
            if self.chance(link.late) {
                due += link.delay / 2;
            }
            let (from, to) = match to_server {
                true => (self.client_addr, transmit.destination),
                false => (self.server_addr, transmit.destination),
            };
            let datagram = Datagram { to_server, from, to, ecn, data: data.into() };
            self.waiting.insert((due, self.sent), datagram);
            self.sent += 1;
        }
    }

    fn arrive(&mut self, datagram: Datagram) {
        let Datagram { to_server, from, to, ecn, data } = datagram;
        if to != if to_server { self.server_addr } else { self.client_addr } {
            return;
        }
        let mut buf = Vec::new();
        let end = if to_server { &mut self.server } else { &mut self.client };
        match end.endpoint.handle(self.now, from, None, ecn, data, &mut buf) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                end.events.entry(handle).or_default().push_back(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = end.endpoint.accept(incoming, self.now, &mut buf, None);
                let (handle, connection) = accepted.map_err(|e| e.cause).expect("is welcome");
                end.connections.insert(handle, connection);
                end.accepted = Some(handle);
            }
            Some(DatagramEvent::Response(transmit)) => self.put(to_server, &transmit, &buf),
            None => {}
        }
    }

    /// Everything that one side can do now.
    fn drive(&mut self, is_client: bool, app: &mut App, which: Option<ConnectionHandle>) {
        let end = if is_client { &mut self.client } else { &mut self.server };
        let mut out = Vec::new();
        let handles: Vec<_> = end.connections.keys().copied().collect();
        for handle in handles {
            let conn = end.connections.get_mut(&handle).expect("is there");
            if conn.poll_timeout().is_some_and(|due| due <= self.now) {
                conn.handle_timeout(self.now);
            }
            for event in end.events.remove(&handle).unwrap_or_default() {
                conn.handle_event(event);
            }
            loop {
                if Some(handle) == which {
                    app.act(conn, self.now, is_client);
                }
                while let Some(event) = conn.poll() {
                    if let quinn_proto::Event::ConnectionLost { reason } = event {
                        assert_ne!(Some(handle), which, "connection lost: {reason}");
                    }
                }
                while let Some(event) = conn.poll_endpoint_events() {
                    if let Some(event) = end.endpoint.handle_event(handle, event) {
                        conn.handle_event(event);
                    }
                }
                let mut buf = Vec::new();
                let Some(transmit) = conn.poll_transmit(self.now, BATCH, &mut buf) else { break };
                out.push((transmit, buf));
            }
        }
        for (transmit, buf) in out {
            self.put(is_client, &transmit, &buf[..transmit.size]);
        }
    }

    /// Sends random data up and down over a new connection; `release` says how much the client
    /// may have written from when on (empty: all at once).
    ///
    /// Panics if the data do not arrive whole within `limit` of virtual time.
    pub fn transfer(
        &mut self,
        up_bytes: usize,
        down_bytes: usize,
        release: &[(Duration, usize)],
        limit: Duration,
    ) -> Outcome {
        let mut random = |bytes: usize| {
            let mut data = vec![0; bytes];
            self.random.fill_bytes(&mut data);
            data
        };
        let (up, down) = (random(up_bytes), random(down_bytes));
        let (up_hash, down_hash) = (Sha256::digest(&up), Sha256::digest(&down));
        let begun = self.now;
        let release = release.iter().map(|(after, bytes)| (begun + *after, *bytes)).collect();
        let (mut client, mut server) = (App::new(up, release), App::new(down, Vec::new()));
        let config = self.client_config.clone();
        let (handle, connection) = self
            .client
            .endpoint
            .connect(begun, config, self.server_addr, NAME)
            .expect("may connect");
        let used_0rtt = connection.has_0rtt();
        self.client.connections.insert(handle, connection);
        self.server.accepted = None;
        while !(client.end && server.end) {
            let elapsed = self.now - self.start;
            let due = |(when, _): &mut (Duration, Change)| *when <= elapsed;
            let due: Vec<_> = self.changes.extract_if(.., due).collect();
            for (_, change) in due {
                change(self);
            }
            self.drive(true, &mut client, Some(handle));
            self.drive(false, &mut server, self.server.accepted);
            let ends = [&mut self.client, &mut self.server];
            let connections = ends.into_iter().flat_map(|end| end.connections.values_mut());
            let timer = connections.filter_map(Connection::poll_timeout).min();
            let arrival = self.waiting.first_key_value().map(|(key, _)| key.0);
            let releases = client.release.iter().map(|r| r.0).filter(|at| *at > self.now);
            let changes = self.changes.iter().map(|c| self.start + c.0);
            let next = timer.into_iter().chain(arrival).chain(releases).chain(changes);
            self.now = next.min().expect("something is to come").max(self.now);
            assert!(self.now - begun <= limit, "not done after {limit:?}");
            while let Some(entry) = self.waiting.first_entry().filter(|e| e.key().0 <= self.now) {
                let datagram = entry.remove();
                self.arrive(datagram);
            }
        }
        assert_eq!(server.received.finalize(), up_hash, "what the server received");
        assert_eq!(client.received.finalize(), down_hash, "what the client received");
        let accepted = self.server.accepted.expect("there was a connection");
        let client = &self.client.connections[&handle];
        Outcome {
            took: self.now - begun,
            used_0rtt: used_0rtt && client.accepted_0rtt(),
            client: client.stats(),
            server: self.server.connections[&accepted].stats(),
        }
    }
}
