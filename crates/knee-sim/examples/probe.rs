use knee_run::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n = a[1].parse().unwrap();
    let rate: u64 = a[2].parse().unwrap();
    let q: u32 = a[3].parse().unwrap();
    let d: u64 = a[4].parse().unwrap();
    let cc = a.get(5).map(|s| s.as_str()).unwrap_or("newreno");
    let params = knee_cc::Params::defaults(knee_cc::algorithm(cc).unwrap());
    let mut spec = RunSpec::dumbbell(
        n,
        PathSpec::symmetric(rate * 1_000_000, 40 * NS_PER_MS, QueueLimit::Packets(q)),
        d * NS_PER_S,
        &params,
        1,
    );
    if let Some(l) = a.get(6) {
        spec.path.loss_forward = l.parse().unwrap();
    }
    if let Some(r) = a.get(7) {
        for f in &mut spec.flows {
            if let FlowKind::Tcp(t) = &mut f.kind {
                if r == "newreno" {
                    t.options.recovery = Recovery::Newreno;
                }
            }
        }
    }
    if a.get(8).is_some() {
        spec.record.bin_ns = 100 * NS_PER_MS;
    }
    let t = std::time::Instant::now();
    let r = knee_sim::run(&spec).unwrap();
    let w = t.elapsed().as_secs_f64();
    let del: u64 = r.flows.iter().map(|f| f.counters.delivered_pkts).sum();
    let bytes: u64 = r.flows.iter().map(|f| f.counters.delivered_bytes).sum();
    println!(
        "wall {w:.4} delivered {del} ns/pkt {:.1} goodput {:.3} Mb/s qmean {:.2} ms",
        w * 1e9 / del as f64,
        bytes as f64 * 8.0 / d as f64 / 1e6,
        r.queue.delay.mean_ns() / 1e6
    );
    println!("{:?}", r.flows[0].counters);
}
