// Package trace sends each answered call as a trace by OTLP over HTTP: a span for the call and one for each step,
// with names, ids and times, but no arguments, output or rules.
//
// Calls never wait: traces that the collector does not accept in time are dropped and counted. OTEL_ variables apply
// as documented by OpenTelemetry, but do not enable it.
package trace

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

const (
	maxWaiting = 2048 // calls
	maxBatch   = 256  // calls sent together
	batchWait  = time.Second
	sendWait   = 10 * time.Second
	drainWait  = 5 * time.Second // for what is left when Run ends
)

// An Exporter sends traces. A nil Exporter sends none.
type Exporter struct {
	to       sdk.SpanExporter
	resource *resource.Resource
	failed   func(error)
	calls    chan call
	dropped  atomic.Int64
}

// New returns an Exporter to url, an OTLP traces endpoint, or nil if url is "". failed is called for the first of
// successive failures. The caller must call Run.
func New(url, version string, failed func(error)) (*Exporter, error) {
	if url == "" {
		return nil, nil
	}
	// No retries, so that a collector that is back gets new traces.
	to, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(url),
		otlptracehttp.WithTimeout(sendWait), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return nil, err
	}
	about := resource.NewSchemaless(attribute.String("service.name", "toold"), attribute.String("service.version", version))
	return &Exporter{to: to, resource: about, failed: failed, calls: make(chan call, maxWaiting)}, nil
}

// Observe queues an answered call; see dispatch.Dispatcher.Observe.
func (e *Exporter) Observe(c *dispatch.Call, event any) {
	final, _ := event.(dispatch.Final)
	if e == nil || final.Return == nil || final.Return.Replayed {
		return
	}
	select {
	case e.calls <- newCall(c, final.Return):
	default:
		e.dropped.Add(1)
	}
}

// Dropped returns the number of unsent calls.
func (e *Exporter) Dropped() int64 {
	if e == nil {
		return 0
	}
	return e.dropped.Load()
}

// Run sends until ctx ends, then the rest for a short time. It must be called once.
func (e *Exporter) Run(ctx context.Context) {
	if e == nil {
		return
	}
	drainCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainWait, cancel) })
	defer stop()
	var recorder spanRecorder
	provider := sdk.NewTracerProvider(sdk.WithResource(e.resource), sdk.WithSpanProcessor(&recorder))
	tracer, failing := provider.Tracer("toold"), false
	for ctx.Err() == nil || len(e.calls) > 0 {
		batch := e.nextBatch(ctx)
		for _, c := range batch {
			c.record(tracer)
		}
		if len(batch) == 0 {
			break
		}
		err := e.send(drainCtx, recorder.spans)
		recorder.spans = nil
		if err != nil {
			e.dropped.Add(int64(len(batch)))
		}
		if err != nil && !failing {
			e.failed(err)
		}
		failing = err != nil
	}
	_ = e.to.Shutdown(drainCtx)
}

// nextBatch collects calls for a short time after the first. After ctx has ended, it returns what is queued.
func (e *Exporter) nextBatch(ctx context.Context) (batch []call) {
	select {
	case c := <-e.calls:
		batch = append(batch, c)
	case <-ctx.Done():
	}
	over := time.After(batchWait)
	for len(batch) < maxBatch {
		select {
		case c := <-e.calls:
			batch = append(batch, c)
			continue
		default:
		}
		select {
		case c := <-e.calls:
			batch = append(batch, c)
		case <-over:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

func (e *Exporter) send(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	return e.to.ExportSpans(ctx, spans)
}

// spanRecorder keeps ended spans. It is not safe for concurrent use.
type spanRecorder struct{ spans []sdk.ReadOnlySpan }

func (*spanRecorder) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (c *spanRecorder) OnEnd(s sdk.ReadOnlySpan) { c.spans = append(c.spans, s) }

func (*spanRecorder) ForceFlush(context.Context) error { return nil }

func (*spanRecorder) Shutdown(context.Context) error { return nil }

// record creates the spans of a call. Times are relative to its arrival, since the clock may have been set.
func (c call) record(tracer trace.Tracer) {
	at := func(t time.Time) trace.SpanEventOption {
		return trace.WithTimestamp(c.begun.Round(0).Add(t.Sub(c.begun)))
	}
	ctx, root := tracer.Start(context.Background(), c.tool, trace.WithSpanKind(trace.SpanKindServer), at(c.begun), trace.WithAttributes(c.attributes()...))
	for _, s := range c.steps {
		_, part := tracer.Start(ctx, s.Name, at(s.From))
		part.End(at(s.To))
	}
	if c.failed {
		root.SetStatus(codes.Error, c.errorType)
	}
	root.End(at(c.ended))
}

// maxID limits the length of sent ids, in bytes, since clients choose them.
const maxID = 256

// call is what is sent about a call. It does not keep arguments and output in memory.
type call struct {
	tool, id, client, agent, conversation, run, step string
	action, by, errorType                            string
	exitCode                                         *int
	failed                                           bool
	begun, ended                                     time.Time
	steps                                            []dispatch.Step
}

func newCall(c *dispatch.Call, ret *message.ToolReturn) call {
	of := c.Client()
	n := call{
		tool: c.Tool(), id: c.ID, client: of.Client, agent: of.AgentID, conversation: of.ConversationID,
		exitCode: ret.ExitCode, failed: ret.Status == "error", begun: c.Received(), ended: time.Now(), steps: c.Steps(),
	}
	if ret.RunID != nil {
		n.run = *ret.RunID
	}
	if ret.StepID != nil {
		n.step = *ret.StepID
	}
	if d := ret.Decision; d != nil {
		n.action, n.by = d.Action, d.By
	}
	if ret.ErrorType != nil {
		n.errorType = string(*ret.ErrorType)
	}
	return n
}

func (c call) attributes() (list []attribute.KeyValue) {
	for key, text := range map[string]string{
		"toold.tool": c.tool, "toold.call_id": c.id, "toold.client": c.client, "toold.agent_id": c.agent, "toold.conversation_id": c.conversation,
		"toold.run_id": c.run, "toold.step_id": c.step, "toold.decision": c.action, "toold.decision.by": c.by, "error.type": c.errorType,
	} {
		if text != "" {
			list = append(list, attribute.String(key, strings.ToValidUTF8(text[:min(len(text), maxID)], "")))
		}
	}
	if c.exitCode != nil {
		list = append(list, attribute.Int("process.exit.code", *c.exitCode))
	}
	return list
}
