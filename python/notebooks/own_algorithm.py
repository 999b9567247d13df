"""An algorithm of one's own, in C: NewReno with another decrease. A marimo notebook."""

import marimo

app = marimo.App()


@app.cell
def _():
    from pathlib import Path

    import marimo as mo

    import knee

    return Path, knee, mo


@app.cell
def _(mo):
    mo.md("""
    # An algorithm of my own

    One C file. This one is NewReno, but a loss takes a quarter of the window, not half of it.
    """)
    return


@app.cell
def _(Path, knee):
    newreno = Path(__file__).parents[2] / "cc/algorithms/newreno.c"
    text = newreno.read_text().replace("newreno", "quarter").replace("NEWRENO", "QUARTER")
    half = "return reno_ssthresh(conn);"
    assert text.count(half) == 1
    text = text.replace(
        half,
        "u32 pkts = conn->cwnd_pkts - conn->cwnd_pkts / 4U;\n\n"
        "\treturn pkts < CC_CWND_FLOOR_PKTS ? CC_CWND_FLOOR_PKTS : pkts;",
    )
    quarter = knee.load_c(text, file="quarter.c")
    return (quarter,)


@app.cell
def _(knee, quarter):
    scenario = knee.Scenario(
        path=knee.Path(rate="10mbit", rtt="40ms", queue="84p"),
        flows=[knee.Flow(quarter), knee.Flow("newreno", start_jitter="10ms")],
        duration="60s",
        repeat=5,
    )
    results = knee.run(scenario)
    share = results.percentiles("share", quarter, from_s=20)
    share
    return results, share


@app.cell
def _(results, share):
    # It gives way less, and so gets more.
    assert share.p20 > 0.5
    results.plot()
    return


if __name__ == "__main__":
    app.run()
