package server

import (
	"errors"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
)

// page is the page of an approval request. Its URL is not secret: without a token that may decide, the page shows
// nothing and accepts no answer. It stores nothing in the browser.
var page = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

const pageText = `<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>toold</title>
<style>body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;min-height:1.2em;padding-left:8ch;text-indent:-8ch}button,input{font:inherit;margin:.3em .3em .3em 0}</style>
<h1>toold</h1>
{{with .Say}}<p>{{.}}</p>{{end}}
{{if .Question}}{{range .Question}}<pre>{{.}}</pre>
{{end}}<form method="post"><input type="hidden" name="token" value="{{.Token}}">
<p><label>Reason, for the agent: <input name="reason"></label></p>
<button name="decision" value="deny">Deny</button>
<button name="decision" value="once">Allow once</button>
{{if .Conversation}}<button name="decision" value="conversation">Allow in this conversation</button>{{end}}
</form>
{{else if .Form}}<form method="post">
<p><label>Token of an approver (toold token show approver): <input type="password" name="token" autocomplete="current-password" autofocus></label> <button>Show the question</button></p>
</form>{{end}}
`

type shown struct {
	Say, Token         string
	Question           []string // lines; what the browser wraps is indented, so that it cannot be mistaken for a line
	Form, Conversation bool
}

// PathOfQuestion returns the URL path of an approval request's page.
func PathOfQuestion(id string) string { return "/approvals/" + id }

func show(w http.ResponseWriter, status int, s shown) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = page().Execute(w, s)
}

func (s *Server) servePage(w http.ResponseWriter, _ *http.Request, _ Token) {
	show(w, http.StatusOK, shown{Form: true, Say: "A call waits for a decision."})
}

const maxForm = 64 << 10

func (s *Server) servePageAnswer(w http.ResponseWriter, r *http.Request, _ Token) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	secret := r.PostFormValue("token")
	token, ok := s.tokenOf(secret)
	if !ok || !token.decides() {
		show(w, http.StatusUnauthorized, shown{Form: true, Say: "This is not the token of somebody who may decide on calls."})
		return
	}
	id := r.PathValue("id")
	v := approval.Verdict{By: token.Name, Reason: r.PostFormValue("reason")}
	switch r.PostFormValue("decision") {
	case "once":
		v.Approve = true
	case "conversation":
		v.Approve, v.Remember = true, "conversation"
	case "deny":
	default:
		s.showQuestion(w, id, secret)
		return
	}
	err := s.opt.Approvals.Resolve(id, v)
	_, answered := errors.AsType[*approval.PartlyError](err)
	switch {
	case errors.Is(err, approval.ErrNotPending):
		show(w, http.StatusNotFound, shown{Say: nothingWaits})
	case answered:
		show(w, http.StatusOK, shown{Say: "The call is answered, and nothing is remembered: " + err.Error()})
	case err != nil:
		show(w, http.StatusConflict, shown{Say: "The answer does not count, and the call still waits: " + err.Error()})
	case v.Approve:
		show(w, http.StatusOK, shown{Say: "Allowed. You can close this page."})
	default:
		show(w, http.StatusOK, shown{Say: "Denied. You can close this page."})
	}
}

const nothingWaits = "No call waits here any more: it was answered, or its time is over."

func (s *Server) showQuestion(w http.ResponseWriter, id, secret string) {
	for _, r := range s.opt.Approvals.Pending() {
		if r.ID == id {
			show(w, http.StatusOK, shown{Question: strings.Split(s.opt.Question(r.Show), "\n"), Token: secret, Conversation: r.Show.Remembers("conversation")})
			return
		}
	}
	show(w, http.StatusNotFound, shown{Say: nothingWaits})
}

// JoinFor makes asked receive the approval requests for which mine returns true, until leave is called.
func JoinFor(q *approval.Queue[message.ApprovalRequest], mine func(message.ApprovalRequest) bool, asked func(message.ApprovalRequest)) (leave func()) {
	return q.JoinFor(askedFunc(asked), mine)
}

type askedFunc func(message.ApprovalRequest)

func (a askedFunc) Asked(r approval.Request[message.ApprovalRequest]) { a(r.Show) }

func (a askedFunc) Resolved(approval.Request[message.ApprovalRequest], approval.Verdict) {}
