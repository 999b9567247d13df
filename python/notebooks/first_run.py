"""A first run: two flows, what they measure, and their tables. A marimo notebook."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import knee

    return knee, mo


@app.cell
def _(mo):
    mo.md("""
    # A first run

    CHD and NewReno share 10 Mbit/s. NewReno starts 20 s later.
    """)
    return


@app.cell
def _(knee):
    scenario = knee.Scenario(
        path=knee.Path(rate="10mbit", rtt="40ms", queue="84p"),
        flows=[knee.Flow("chd", qth="20ms"), knee.Flow("newreno", start="20s")],
        duration="60s",
        repeat=3,
    )
    results = knee.run(scenario)
    results
    return results, scenario


@app.cell
def _(mo, results):
    alone = results.queueing_delay(from_s=5, to_s=20)
    beside = results.queueing_delay(from_s=25)
    mo.md(f"""
    Alone, CHD keeps the queue at {alone:.1f} ms. Against NewReno, which fills it, the delay is
    {beside:.1f} ms, and CHD has {100 * results.share("chd", from_s=25):.0f} % of the goodput.
    """)
    return alone, beside


@app.cell
def _(results):
    results.plot()
    return


@app.cell
def _(results):
    import pyarrow

    # One row per repetition, flow and 100 ms; no value is copied.
    flows = pyarrow.table(results.flows)
    flows.group_by("flow").aggregate([("goodput_bps", "mean"), ("cwnd_pkts", "max")])
    return


if __name__ == "__main__":
    app.run()
