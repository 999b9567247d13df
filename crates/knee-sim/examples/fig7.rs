use knee_run::*;
use knee_cc::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let cc = &a[1]; let loss: f64 = a[2].parse().unwrap(); let rec = if a[3]=="sack" {Recovery::Sack} else {Recovery::Newreno};
    let delack: u32 = a[4].parse().unwrap(); let jit: u64 = a[5].parse().unwrap(); // us
    let alg = algorithm(cc).unwrap();
    let given: Vec<(String,u64)> = a[6..].iter().map(|s| { let (k,v)=s.split_once('=').unwrap(); (k.to_string(), v.parse().unwrap()) }).collect();
    let tick = std::env::var("TICK").ok().map_or(0, |t| t.parse().unwrap());
    let iw = std::env::var("IW").ok().map_or(3, |t| t.parse().unwrap());
    let count = std::env::var("COUNT").ok().map_or(1, |t| t.parse().unwrap());
    let rtomin = std::env::var("RTOMIN").ok().map_or(200, |t| t.parse().unwrap());
    let d = Params::new(alg, given.iter().map(|(k,v)|(k.as_str(),*v)).chain([("count",count)])).unwrap();
    let n = Params::new(algorithm("newreno").unwrap(), [("count",count)]).unwrap();
    let wins = [(20,40),(40,60),(60,80),(80,100),(100,120),(120,140)];
    let mut rows = vec![];
    for seed in 1..=10u64 {
        let flow = |i: usize, p: &Params| FlowSpec { name: format!("f{i}"), start_ns: i as u64*20*NS_PER_S, start_jitter_ns: 40*NS_PER_MS, stop_ns: Some((i as u64*20+80)*NS_PER_S), access_delay_ns: 0, access_jitter_ns: jit*1000,
            kind: FlowKind::Tcp(TcpSpec{params: p.clone(), workload: Workload::Bulk, options: TcpOptions{recovery: rec, initial_window_pkts: iw, receive_window_pkts: 100000, rto_min_ns: rtomin*NS_PER_MS, delayed_ack: DelayedAck{every_pkts: delack, timeout_ns: 100*NS_PER_MS}, rtt_tick_ns: tick*1000, ..TcpOptions::default()}})};
        let mut path = PathSpec::symmetric(10_000_000, 40*NS_PER_MS, QueueLimit::Packets(84)); path.loss_forward = loss;
        let spec = RunSpec { seed, duration_ns: 140*NS_PER_S, path, flows: vec![flow(0,&d),flow(1,&n),flow(2,&n),flow(3,&d)], record: RecordSpec{bin_ns: 100*NS_PER_MS, ..Default::default()}};
        let r = knee_sim::run(&spec).unwrap();
        let g = |f: usize, (a,b): (usize,usize)| r.flows[f].samples[a*10..b*10].iter().map(|s| s.delivered_bytes).sum::<u64>() as f64*8.0/((b-a) as f64)/1e6;
        let mut row: Vec<f64> = vec![];
        for w in wins { for f in 0..4 { row.push(g(f,w)); } }
        // D share averaged: D flows goodput / total over 20-120
        let dsum = g(0,(20,80))*60.0 + g(3,(60,120))*60.0; let nsum = g(1,(20,100))*80.0+g(2,(40,120))*80.0;
        row.push(dsum/(dsum+nsum));
        // fair fraction: mean over windows of D goodput / fair share
        let c = r.flows[0].counters; row.push(c.delay_backoffs_region_a as f64); row.push(c.delay_backoffs_region_b as f64); row.push(c.loss_events as f64); row.push(c.losses_tolerated as f64); row.push(c.timeouts as f64);
        row.push(r.flows[1].counters.loss_events as f64); row.push(r.flows[1].counters.timeouts as f64);
        rows.push(row);
    }
    let med = |i: usize| { let mut v: Vec<f64> = rows.iter().map(|r| r[i]).collect(); v.sort_by(f64::total_cmp); (v[4]+v[5])/2.0 };
    for (k,w) in wins.iter().enumerate() { print!("{}-{}: ", w.0,w.1); for f in 0..4 { print!("{:.2} ", med(k*4+f)); } print!("| "); }
    println!("\n  Dshare {:.3} bkA {} bkB {} loss {} tol {} to {} | N loss {} to {}", med(24), med(25), med(26), med(27), med(28), med(29), med(30), med(31));
}
