package metrics

import (
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// exported returns what a daemon exports in which all has happened once.
func exported(t *testing.T) string {
	t.Helper()
	none := func() int64 { return 0 }
	m := New(Source{
		Version: "test", States: func() map[string]int { return nil }, Clients: func() int { return 0 },
		Journal: func() (log, index int64) { return 0, 0 }, Masks: func() int { return 0 },
		Warm: none, Hits: none, Started: none, Ahead: none, Failed: none, Dropped: none,
	})
	m.calls.WithLabelValues("bash", "allow", "policy", "success").Inc()
	m.seconds.WithLabelValues("bash").Observe(1)
	m.steps.WithLabelValues("run").Observe(1)
	m.Observe(nil, message.PolicyDecision{Action: "allow"})
	m.Observe(nil, message.ConnectionDecision{Action: "allow", By: "a text of the client's"})
	m.denials.WithLabelValues("file").Inc()
	m.Refused("token")
	m.Synced(time.Millisecond, errors.New("no"))
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestTheDashboardQueriesWhatIsExported(t *testing.T) {
	t.Parallel()
	all := exported(t)
	dashboard := must.Get(os.ReadFile("../../docs/grafana.json"))(t)
	names := regexp.MustCompile(`\b(toold|go|process)_[a-z_]+\b`).FindAllString(string(dashboard), -1)
	if len(names) < 20 {
		t.Errorf("the dashboard names %d metrics", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(all) {
			t.Errorf("the dashboard queries %s, which is not exported", name)
		}
	}
}

func TestEachMetricIsDocumentedAndShown(t *testing.T) {
	t.Parallel()
	all := exported(t)
	for _, file := range []string{"../../docs/operations.md", "../../docs/grafana.json"} {
		text := must.Get(os.ReadFile(file))(t)
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (toold_\w+)`).FindAllStringSubmatch(all, -1) {
			if !strings.Contains(string(text), m[1]) {
				t.Errorf("%s lacks %s", file, m[1])
			}
		}
	}
}

func TestALabelHasNoTextOfAClient(t *testing.T) {
	t.Parallel()
	if all := exported(t); strings.Contains(all, "client's") || !strings.Contains(all, `toold_connection_decisions_total{by="other",decision="allow"} 1`) {
		t.Errorf("exported: %s", all)
	}
}
