package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Agents write much of a question. With many spaces they choose where the browser breaks a line.
func TestALineOfAQuestionThatIsWrappedIsIndented(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	show(w, http.StatusOK, shown{Question: strings.Split("rule asks\n  | git push    - run true\n  - run <b>", "\n")})
	body := w.Body.String()
	for _, want := range []string{"<pre>rule asks</pre>", "<pre>  | git push    - run true</pre>", "<pre>  - run &lt;b&gt;</pre>", "padding-left:8ch;text-indent:-8ch"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s:\n%s", want, body)
		}
	}
}
