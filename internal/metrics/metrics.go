// Package metrics counts what a daemon does, for Prometheus. It counts an event in about a microsecond, and reads
// states from a Source on request. Labels contain names of tools and constants, never text from clients, calls or
// policies.
package metrics

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// A Source returns the current state. All fields are required. The functions may be called concurrently.
type Source struct {
	Version string
	States  func() map[string]int     // unanswered calls
	Clients func() int                // connections
	Journal func() (log, index int64) // bytes
	Masks   func() int                // masked files and directories
	Warm    func() int64              // warm shells
	Hits    func() int64              // calls that used a warm shell
	Started func() int64              // sandboxes started for a call
	Ahead   func() int64              // sandboxes started before calls
	Failed  func() int64              // warm shells and file workers that failed
	Dropped func() int64              // traces that were not sent
}

// Metrics are the metrics of a daemon. It is safe for concurrent use.
type Metrics struct {
	http.Handler // answers with all metrics

	calls       *prometheus.CounterVec
	replays     prometheus.Counter
	seconds     *prometheus.HistogramVec
	steps       *prometheus.HistogramVec
	decisions   *prometheus.CounterVec
	connections *prometheus.CounterVec
	denials     *prometheus.CounterVec
	refused     *prometheus.CounterVec
	sync        prometheus.Histogram
	unsynced    prometheus.Counter
}

// New returns the metrics.
func New(s Source) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{Handler: promhttp.HandlerFor(r, promhttp.HandlerOpts{})}
	m.registerCounters(r)
	m.registerHistograms(r)
	s.register(r)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) registerCounters(r *prometheus.Registry) {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	m.calls = vec("toold_calls_total", "Answered calls. decision is the last one: allow, deny, or none when nothing was decided; by is what made it; outcome is success, error (the tool failed) or the error type.", "tool", "decision", "by", "outcome")
	m.replays = counter("toold_replays_total", "Calls sent again, which got the recorded return.")
	m.decisions = vec("toold_policy_decisions_total", "What the policy said about calls, before a person was asked.", "action")
	m.connections = vec("toold_connection_decisions_total", "Decisions about hosts that running calls wanted to reach.", "decision", "by")
	m.denials = vec("toold_denials_total", "What the sandbox kept from calls, as returns list it.", "kind")
	m.refused = vec("toold_refused_requests_total", "Connections and requests that were refused: limit, token, role, host, origin or other.", "why")
	m.unsynced = counter("toold_journal_sync_failures_total", "Attempts to bring the journal to the disk that failed.")
}

func (m *Metrics) registerHistograms(r *prometheus.Registry) {
	bounds := []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	vec := func(name, help, label string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, []string{label})
		r.MustRegister(h)
		return h
	}
	m.seconds = vec("toold_call_seconds", "From the arrival of a call to its return.", "tool")
	m.steps = vec("toold_call_step_seconds", "Parts of the time of calls: judge, ask (a person), queue, run, record.", "step")
	m.sync = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "toold_journal_sync_seconds", Help: "Bringing the journal to the disk.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	})
	r.MustRegister(m.sync)
}

// Observe counts an event of a call; see dispatch.Dispatcher.Observe.
func (m *Metrics) Observe(c *dispatch.Call, event any) {
	switch e := event.(type) {
	case message.PolicyDecision:
		m.decisions.WithLabelValues(labelValue(e.Action, actions)).Inc()
	case message.ConnectionDecision:
		m.connections.WithLabelValues(labelValue(e.Action, actions), labelValue(e.By, deciders)).Inc()
	case dispatch.Final:
		m.answered(c, e.Return)
	}
}

func (m *Metrics) answered(c *dispatch.Call, ret *message.ToolReturn) {
	switch {
	case ret == nil: // another call has its id
		return
	case ret.Replayed:
		m.replays.Inc()
		return
	}
	tool := c.Tool()
	decision, by := "none", "none"
	if d := ret.Decision; d != nil {
		decision, by = labelValue(d.Action, actions), labelValue(d.By, deciders)
	}
	m.calls.WithLabelValues(tool, decision, by, outcome(ret)).Inc()
	m.seconds.WithLabelValues(tool).Observe(time.Since(c.Received()).Seconds())
	for _, s := range c.Steps() {
		m.steps.WithLabelValues(s.Name).Observe(s.To.Sub(s.From).Seconds())
	}
	for _, d := range ret.Denials {
		m.denials.WithLabelValues(labelValue(string(d.Kind), denials)).Inc()
	}
}

// Synced counts a sync of the journal; see journal.Journal.Measure.
func (m *Metrics) Synced(took time.Duration, err error) {
	m.sync.Observe(took.Seconds())
	if err != nil {
		m.unsynced.Inc()
	}
}

// Refused counts a refusal; see server.Options.
func (m *Metrics) Refused(why string) { m.refused.WithLabelValues(why).Inc() }

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
	r.MustRegister(&stateCollector{
		source: s,
		states: prometheus.NewDesc("toold_unanswered_calls", "Calls that have no return yet, by state: received, waiting (for a person), queued, running.", []string{"state"}, nil),
		bytes:  prometheus.NewDesc("toold_journal_bytes", "The size of the journal's log and of its index.", []string{"part"}, nil),
	})
}

type stateCollector struct {
	source        Source
	states, bytes *prometheus.Desc
}

func (v *stateCollector) Describe(to chan<- *prometheus.Desc) {
	to <- v.states
	to <- v.bytes
}

func (v *stateCollector) Collect(to chan<- prometheus.Metric) {
	count := v.source.States()
	for _, s := range []string{message.CallReceived, message.CallWaiting, message.CallQueued, message.CallRunning} {
		to <- prometheus.MustNewConstMetric(v.states, prometheus.GaugeValue, float64(count[s]), string(s))
	}
	log, index := v.source.Journal()
	to <- prometheus.MustNewConstMetric(v.bytes, prometheus.GaugeValue, float64(log), "log")
	to <- prometheus.MustNewConstMetric(v.bytes, prometheus.GaugeValue, float64(index), "index")
}

// Known values of labels; all others become "other".
var (
	actions  = []string{"allow", "ask", "deny"}
	deciders = []string{"policy", "person", "beforehand", "remembered", "deadline"}
	denials  = []string{"file", "socket", "host", "name", "protected", "syscall", "limit"}
	failures = []string{
		string(message.DuplicateToolCall), string(message.NotFound), string(message.NotRunning), string(message.InvalidArguments), string(message.InternalError),
		string(message.UnknownTool), string(message.Denied), string(message.ApprovalTimeout), string(message.Timeout), string(message.Cancelled),
		string(message.InputNeeded), string(message.SandboxUnavailable), string(message.ProtectedPath), string(message.TooManyCalls), string(message.Shutdown),
		string(message.UnknownAfterCrash), string(message.NotStartedAfterCrash),
	}
)

func labelValue(value string, values []string) string {
	if slices.Contains(values, value) {
		return value
	}
	return "other"
}

func outcome(ret *message.ToolReturn) string {
	if ret.ErrorType != nil {
		return labelValue(string(*ret.ErrorType), failures)
	}
	return labelValue(ret.Status, []string{"success", "error"})
}
