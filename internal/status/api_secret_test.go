package status

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
)

// clerk is a node that knows one run, of a command that has printed something.
type clerk struct {
	counter
	run diagnose.Run
}

func (c clerk) Printed(context.Context, string, string) (operate.Printed, error) {
	return operate.Printed{Text: c.run.Output}, nil
}

func (c clerk) Run(_ context.Context, job, _ string) (operate.JobRun, error) {
	return operate.JobRun{Job: job, Run: c.run}, nil
}

func (c clerk) Recent(context.Context) (map[string][]operate.Brief, error) {
	return map[string][]operate.Brief{"report": {{RunID: "r1", State: "failed", Line: c.run.Output}}, "new": nil}, nil
}

// secretive returns a server whose jobs print a secret.
func secretive(t *testing.T, secret string) *Server {
	t.Helper()
	snap := statustest.Sample(time.Now())
	snap.Jobs[2].LastRun.Output, snap.Jobs[2].LastRun.Error = secret, "exit code 3: "+secret
	c := clerk{run: *snap.Jobs[2].LastRun}
	return New(Config{Source: statustest.Fixed(snap), Health: standby, Node: c, TokenFile: tokenFile(t, secretToken)})
}

func TestOneRunIsToldInFullToWhoMaySeeIt(t *testing.T) {
	const secret = "the password is hunter2"
	s := secretive(t, secret)
	for _, c := range []struct {
		path    string
		headers []string
		code    int
		sees    bool
	}{
		{"/api/v1/jobs/report/runs/r1", nil, 200, false},
		{"/api/v1/jobs/report/runs/r1", bearer(secretToken), 200, true},
		{"/api/v1/runs", nil, 200, false},
		{"/api/v1/runs", bearer(secretToken), 200, true},
		{"/api/v1/jobs/report/runs/r1/output", nil, 401, false},
		{"/api/v1/jobs/report/runs/r1/output", bearer(secretToken), 200, true},
	} {
		r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747"+c.path, nil), loopbackAddr)
		if c.headers != nil {
			r.Header.Set(c.headers[0], c.headers[1])
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if sees := strings.Contains(rec.Body.String(), secret); rec.Code != c.code || sees != c.sees {
			t.Errorf("%s with %.14q: %d, shows it: %t; want %d, %t", c.path, c.headers, rec.Code, sees, c.code, c.sees)
		}
	}
}

func TestAStreamTellsInFullWhoMaySeeIt(t *testing.T) {
	const secret = "the password is hunter2"
	for _, sees := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := secretive(t, secret)
			ctx, hangUp := context.WithCancel(t.Context())
			r := from(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:9747/api/v1/stream", nil), loopbackAddr)
			if sees {
				r.Header.Set("Authorization", "Bearer "+secretToken)
			}
			rec, ended := httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(ended)
				s.ServeHTTP(rec, r)
			}()
			time.Sleep(10 * time.Second)
			hangUp()
			<-ended
			if body := rec.Body.String(); !strings.Contains(body, "exit code 3") || strings.Contains(body, secret) != sees {
				t.Errorf("with the token %t: %s", sees, body)
			}
			s.watch.End()
			time.Sleep(time.Minute)
		})
	}
}
