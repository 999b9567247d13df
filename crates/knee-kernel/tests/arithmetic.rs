//! The arithmetic of the BPF build is that of the native one: the same calls, run by the kernel on
//! request, give the same bytes, whatever goes in. Needs root.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

#[path = "../clang.rs"]
#[allow(dead_code)] // of two functions this needs one
mod clang;

use knee_cc::{
    Ack, Algorithm, Call, CallRecord, Conn, OBSERVE_N, Params, Profile, STATE_MAX_BYTES, State,
    algorithms,
};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};
use std::{
    path::{Path, PathBuf},
    ptr,
};

/// Calls of each algorithm with each set of parameters.
const CALLS: usize = 1500;
/// Sets of parameters in addition to the defaults.
const SETS: u64 = 2;

const CONN_BYTES: usize = size_of::<Conn>();
const ACK_BYTES: usize = 48;
const STATE_AT: usize = CONN_BYTES + ACK_BYTES;
const OBSERVED_AT: usize = STATE_AT + STATE_MAX_BYTES;
const EVENT_AT: usize = OBSERVED_AT + 4 * OBSERVE_N;
const RESULT_AT: usize = EVENT_AT + 4;

/// Draws what a host may pass (`knee/contract.h`), small and large values alike.
struct Draw(SplitMix64);

impl Draw {
    fn up_to(&mut self, most: u64) -> u64 {
        let draw = self.0.next_u64();
        let value = self.0.next_u64() >> (draw % 64);
        match draw >> 32 & 15 {
            0 => 0,
            1 => most,
            _ => value % most.saturating_add(1).max(1),
        }
    }

    fn within(&mut self, least: u32, most: u32) -> u32 {
        least + self.up_to(u64::from(most - least)) as u32
    }

    fn any(&mut self) -> u32 {
        self.within(0, u32::MAX)
    }

    fn conn(&mut self, last: &Conn) -> Conn {
        let carries = self.up_to(3) > 0;
        let cwnd_max_pkts = self.within(2, 1 << 30);
        let cwnd_pkts = if carries { last.cwnd_pkts } else { self.within(1, cwnd_max_pkts) };
        Conn {
            now_us: match carries {
                true => (last.now_us + u64::from(self.any()) / 1000).min(1 << 62),
                false => self.up_to(1 << 62),
            },
            pacing_bytes_per_s: if carries { last.pacing_bytes_per_s } else { self.up_to(1 << 62) },
            cwnd_pkts: cwnd_pkts.min(cwnd_max_pkts),
            cwnd_cnt: if carries { last.cwnd_cnt } else { self.any() },
            ssthresh_pkts: if carries { last.ssthresh_pkts } else { self.within(2, 0x7fff_ffff) },
            cwnd_max_pkts,
            mss_bytes: self.within(1, 65_535),
            inflight_pkts: self.any(),
            outstanding_pkts: self.any(),
            srtt_us: self.any(),
            snd_pos: self.any(),
            ack_pos: self.any(),
            notes: 0,
            phase: self.within(0, 4) as u8,
            cwnd_limited: self.within(0, 1) as u8,
            app_limited: self.within(0, 1) as u8,
            reserved: 0,
        }
    }

    fn ack(&mut self) -> Ack {
        Ack {
            delivered_pkts: self.up_to(1 << 62),
            acked_pkts: self.any(),
            lost_pkts: self.any(),
            rtt_us: match self.up_to(7) {
                0 => -1,
                1..=4 => self.within(10_000, 500_000) as i32,
                _ => self.within(0, i32::MAX as u32) as i32,
            },
            random: self.any(),
            sample_pkts: self.any(),
            sample_us: self.any(),
            sample_prior_pkts: self.any(),
            prior_inflight_pkts: self.any(),
            sample_app_limited: self.within(0, 1),
            advanced_pkts: self.any(),
        }
    }

    /// A valid set of parameters.
    fn params(&mut self, algorithm: Algorithm) -> Params {
        loop {
            let table = algorithm.params();
            let given = table.iter().map(|p| {
                let value = if self.up_to(2) == 0 { p.default } else { self.within(p.min, p.max) };
                (p.name, u64::from(value))
            });
            let given: Vec<_> = given.collect();
            if let Ok(params) = Params::new(algorithm, given) {
                return params;
            }
        }
    }
}

/// The object of an algorithm, with `calls/knee/host.h`.
fn compile(algorithm: Algorithm, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let object = folder.join(algorithm.name());
    let source = format!("cc/algorithms/{}.c", algorithm.name());
    // As `clang::compile` optimises them.
    let optimisation = if algorithm.profile() == Profile::Rate { "-O1" } else { "-O2" };
    let libbpf = env!("KNEE_LIBBPF");
    let host = ["-iquote", "crates/knee-kernel/tests/calls", "-isystem", libbpf, optimisation];
    clang::run(&root, Path::new(&source), &object, &host).unwrap_or_else(|e| panic!("{e}"));
    object
}

fn load(object: &Path, params: &Params) -> Object {
    let mut open = ObjectBuilder::default().open_file(object).unwrap();
    let words: Vec<u8> = params.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut maps = open.maps_mut();
    let mut map = maps.find(|map| map.name() == ".rodata.knee").unwrap();
    map.initial_value_mut().unwrap()[..words.len()].copy_from_slice(&words);
    drop(maps);
    open.load().unwrap()
}

/// The call as the kernel makes it, from `state`.
fn in_kernel(object: &Object, call: &CallRecord, state: State) -> CallRecord {
    let map = object.maps().find(|map| map.name() == ".data.knee").unwrap();
    let mut case = vec![0; map.value_size() as usize];
    // SAFETY: both are plain data without padding, laid out as in C (a test of knee-cc), and `case`
    // has room for them.
    unsafe {
        ptr::write_unaligned(case.as_mut_ptr().cast(), call.before);
        ptr::write_unaligned(case[CONN_BYTES..].as_mut_ptr().cast(), call.ack);
    }
    case[STATE_AT..OBSERVED_AT].copy_from_slice(state.bytes());
    case[EVENT_AT..RESULT_AT].copy_from_slice(&call.event.to_ne_bytes());
    map.update(&0_u32.to_ne_bytes(), &case, MapFlags::ANY).unwrap();
    for name in [call.call.name(), "observe"] {
        let program = object.progs_mut().find(|p| *p.name() == *format!("knee_{name}")).unwrap();
        program.test_run(ProgramInput::default()).unwrap();
    }
    let case = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    let word = |at: usize| u32::from_ne_bytes(case[at..at + 4].try_into().unwrap());
    let state: [u8; STATE_MAX_BYTES] = case[STATE_AT..OBSERVED_AT].try_into().unwrap();
    CallRecord {
        // SAFETY: as above; any bytes are a value.
        after: unsafe { ptr::read_unaligned(case.as_ptr().cast()) },
        result: word(RESULT_AT),
        observed: std::array::from_fn(|i| word(OBSERVED_AT + 4 * i)),
        state: State::from(state),
        ..*call
    }
}

fn compare(algorithm: Algorithm, object: &Path, params: &Params, draw: &mut Draw) {
    let loaded = load(object, params);
    let calls: Vec<Call> = Call::ALL
        .into_iter()
        .filter(|call| algorithm.profile() == Profile::Classic || *call != Call::OnRtt)
        .collect();
    let mut last = CallRecord { after: Conn::default(), ..CallRecord::default() };
    last.after.cwnd_pkts = 10;
    last.after.ssthresh_pkts = 0x7fff_ffff;
    for number in 0..CALLS {
        // Most calls are those of ACKs.
        let call = match draw.up_to(9) {
            _ if number == 0 => Call::Init,
            0..3 => calls[draw.up_to(calls.len() as u64 - 1) as usize],
            even if even % 2 == 0 => Call::of_every_ack(algorithm.profile()),
            _ => Call::OnAck,
        };
        let (before, ack, event) = (draw.conn(&last.after), draw.ack(), draw.within(0, 3));
        let state = if call == Call::Init { State::default() } else { last.state };
        let case = CallRecord { call, event, ack, before, ..CallRecord::default() };
        let native = case.again(params, state).unwrap();
        let kernel = in_kernel(&loaded, &case, state);
        assert_eq!(kernel, native, "{}, call {number}, {:?}", algorithm.name(), params.words());
        last = native;
    }
}

#[test]
fn the_kernel_computes_the_same_as_the_native_build() {
    let folder = tempfile::tempdir().unwrap();
    let mut draw = Draw(SplitMix64::seed_from_u64(1));
    for algorithm in algorithms().iter().copied() {
        let object = compile(algorithm, folder.path());
        compare(algorithm, &object, &Params::defaults(algorithm), &mut draw);
        for _ in 0..SETS {
            let params = draw.params(algorithm);
            compare(algorithm, &object, &params, &mut draw);
        }
    }
}
