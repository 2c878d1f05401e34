package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toold/toold/message"
)

func (s Source) register(r *prometheus.Registry) {
	gauge := func(name, help string, read func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	starts := func(why string, read func() int64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "toold_sandbox_starts_total", Help: "Sandboxes started for commands: for a call that found no warm shell, or ahead of calls.",
			ConstLabels: prometheus.Labels{"for": why},
		}, func() float64 { return float64(read()) }))
	}
	starts("call", s.Started)
	starts("ahead", s.Ahead)
	counter := func(name, help string, read func() int64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
	}
	counter("toold_pool_hits_total", "Commands that found a warm shell.", s.Hits)
	counter("toold_sandbox_failures_total", "Warm shells, and processes that open files, that failed; calls went on without them.", s.Failed)
	counter("toold_traces_dropped_total", "Traces of calls that could not be sent.", s.Dropped)
	gauge("toold_warm_shells", "Shells that wait for a command.", func() float64 { return float64(s.Warm()) })
	gauge("toold_clients", "Connections of clients.", func() float64 { return float64(s.Clients()) })
	gauge("toold_masked_paths", "Files and directories that rules keep from the programs of a call, in the workspaces that are open.", func() float64 { return float64(s.Masks()) })
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "toold_build_info", Help: "The version of toold; always 1.", ConstLabels: prometheus.Labels{"version": s.Version},
	}, func() float64 { return 1 }))
	r.MustRegister(&vectors{
		source: s,
		states: prometheus.NewDesc("toold_unanswered_calls", "Calls that have no return yet, by state: received, waiting (for a person), queued, running.", []string{"state"}, nil),
		bytes:  prometheus.NewDesc("toold_journal_bytes", "The size of the journal's log and of its index.", []string{"part"}, nil),
	})
}

// vectors are gauges read together.
type vectors struct {
	source        Source
	states, bytes *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (v *vectors) Describe(to chan<- *prometheus.Desc) {
	to <- v.states
	to <- v.bytes
}

// Collect implements prometheus.Collector.
func (v *vectors) Collect(to chan<- prometheus.Metric) {
	count := v.source.States()
	for _, s := range []string{message.CallReceived, message.CallWaiting, message.CallQueued, message.CallRunning} {
		to <- prometheus.MustNewConstMetric(v.states, prometheus.GaugeValue, float64(count[s]), string(s))
	}
	log, index := v.source.Journal()
	to <- prometheus.MustNewConstMetric(v.bytes, prometheus.GaugeValue, float64(log), "log")
	to <- prometheus.MustNewConstMetric(v.bytes, prometheus.GaugeValue, float64(index), "index")
}
