package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/notify/service"
)

// theSecret is the secret for the signatures of the bots in these tests.
const theSecret = "SECthe-secret"

// bots check a request as the real services do, and return the answer to the first mistake in it.
var bots = map[string]func(query map[string][]string, body map[string]any) string{
	"slack": func(_ map[string][]string, body map[string]any) string {
		if text, ok := body["text"].(string); !ok || text == "" || len(body) != 1 {
			return "invalid_payload"
		}
		return "ok"
	},
	"feishu": func(_ map[string][]string, body map[string]any) string {
		timestamp, _ := body["timestamp"].(string)
		sign, _ := body["sign"].(string)
		content, _ := body["content"].(map[string]any)
		switch {
		case body["msg_type"] != "text" || content["text"] == "":
			return `{"code":19002,"msg":"params error, msg_type need"}`
		case !recent(timestamp, time.Second) || sign != signed(timestamp+"\n"+theSecret, ""):
			return `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`
		}
		return `{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}`
	},
	"dingtalk": func(query map[string][]string, body map[string]any) string {
		timestamp, sign := strings.Join(query["timestamp"], ","), strings.Join(query["sign"], ",")
		content, _ := body["text"].(map[string]any)
		switch {
		case strings.Join(query["access_token"], ",") != "secret-path":
			return `{"errcode":300001,"errmsg":"token is not exist"}`
		case !recent(timestamp, time.Millisecond) || sign != signed(theSecret, timestamp+"\n"+theSecret):
			return `{"errcode":310000,"errmsg":"sign not match"}`
		case body["msgtype"] != "text" || content["content"] == "":
			return `{"errcode":40035,"errmsg":"param error"}`
		}
		return `{"errcode":0,"errmsg":"ok"}`
	},
	"wecom": func(query map[string][]string, body map[string]any) string {
		content, _ := body["text"].(map[string]any)
		text, _ := content["content"].(string)
		switch {
		case strings.Join(query["access_token"], ",") != "secret-path":
			return `{"errcode":93000,"errmsg":"invalid webhook url, hint: [1], from ip: 10.0.0.1"}`
		case body["msgtype"] != "text" || text == "":
			return `{"errcode":40058,"errmsg":"invalid Request Parameter"}`
		case len(text) > 2048:
			return `{"errcode":45002,"errmsg":"content size out of limit"}`
		}
		return `{"errcode":0,"errmsg":"ok"}`
	},
}

func signed(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(mac, text)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func recent(timestamp string, unit time.Duration) bool {
	n, err := strconv.ParseInt(timestamp, 10, 64)
	return err == nil && time.Since(time.Unix(0, 0).Add(time.Duration(n)*unit)).Abs() < time.Hour
}

// bot serves one of the bots. It stores each request in got.
func bot(t *testing.T, name string, got *map[string]any) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*got = nil
		if err := json.NewDecoder(r.Body).Decode(got); err != nil || r.Method != http.MethodPost ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s with %v: %v", r.Method, r.Header, err)
		}
		_, _ = io.WriteString(w, bots[name](r.URL.Query(), *got))
	}))
	t.Cleanup(s.Close)
	return s
}

func secretOf(f service.Format, secret string) func() (string, error) {
	if f.Secret != service.Signs {
		secret = ""
	}
	return text(secret)
}

func TestEveryServiceTakesWhatItIsSent(t *testing.T) {
	for _, name := range service.Names()[1:] {
		t.Run(name, func(t *testing.T) {
			var got map[string]any
			s := bot(t, name, &got)
			w := NewWebhook(format(name), text(s.URL+"/?access_token=secret-path"), secretOf(format(name), theSecret))
			for _, said := range []string{"Job users failed on db1", strings.Repeat("語", 5000), strings.Repeat("<@all><at>", 900)} {
				if err := w.Send(t.Context(), Event{Text: said}); err != nil {
					t.Error(err)
				}
				if posted := fmt.Sprint(got); !strings.Contains(posted, "baton: "+said[:3]) && !strings.Contains(posted, "baton: &lt;@") && !strings.Contains(posted, "baton: < ") {
					t.Errorf("posted %.100s", posted)
				}
			}
		})
	}
}

func TestAWrongSecretIsARefusalThatSaysWhatToCheck(t *testing.T) {
	for _, name := range []string{"feishu", "dingtalk"} {
		for _, secret := range []string{"another-secret", ""} {
			var got map[string]any
			s := bot(t, name, &got)
			err := NewWebhook(format(name), text(s.URL+"/?access_token=secret-path"), text(secret)).Send(t.Context(), Event{Text: "x"})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "token_file") || strings.Contains(err.Error(), "another-secret") {
				t.Errorf("%s with secret %q: %v", name, secret, err)
			}
		}
	}
}

func TestAServiceSaysInTheBodyWhetherItHasTakenTheMessage(t *testing.T) {
	const delivered, again, never = "delivered", "again", "never"
	for _, c := range []struct {
		service string
		status  int
		body    string
		want    string
		wait    time.Duration
	}{
		{"feishu", 200, `{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}`, delivered, 0},
		{"feishu", 200, `{"code":19002,"msg":"params error, msg_type need"}`, never, 0},
		{"feishu", 200, `{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}`, never, 0},
		{"feishu", 400, `{"code":9499,"msg":"Bad Request","data":{}}`, never, 0},
		{"feishu", 200, `{"code":11232,"msg":"frequency limited psm"}`, again, time.Minute},
		{"feishu", 200, `{"code":1,"msg":"?"}`, again, 0},
		{"feishu", 200, `<html>sign in`, again, 0},
		{"feishu", 200, `{}`, again, 0},
		{"feishu", 200, `{"code":`, again, 0},
		{"feishu", 502, ``, again, 0},
		{"feishu", 404, `not found`, never, 0},
		{"feishu", 500, `{"code":0}`, again, 0},

		{"dingtalk", 200, `{"errcode":0,"errmsg":"ok"}`, delivered, 0},
		{"dingtalk", 200, `{"errcode":310000,"errmsg":"sign not match, more: [https://example.com/secret-path]"}`, never, 0},
		{"dingtalk", 200, `{"errcode":300001,"errmsg":"token is not exist"}`, never, 0},
		{"dingtalk", 200, `{"errcode":400102,"errmsg":"stopped"}`, never, 0},
		{"dingtalk", 200, `{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}`, again, time.Minute},
		{"dingtalk", 200, `{"errcode":410100,"errmsg":"send too fast"}`, again, time.Minute},
		{"dingtalk", 200, `{"errcode":-1,"errmsg":"system busy"}`, again, 0},
		{"dingtalk", 200, `{"code":0}`, again, 0},

		{"wecom", 200, `{"errcode":0,"errmsg":"ok"}`, delivered, 0},
		{"wecom", 200, `{"errcode":93000,"errmsg":"invalid webhook url, hint: [secret-path]"}`, never, 0},
		{"wecom", 200, `{"errcode":45009,"errmsg":"api freq out of limit"}`, again, time.Minute},
		{"wecom", 200, `{"errcode":-1,"errmsg":"system busy"}`, again, 0},
		{"wecom", 200, `ok`, again, 0},

		{"slack", 200, `ok`, delivered, 0},
		{"slack", 200, `<html>sign in`, again, 0},
		{"slack", 200, ``, again, 0},
		{"slack", 400, `invalid_payload`, never, 0},
		{"slack", 403, `action_prohibited`, never, 0},
		{"slack", 404, `no_service`, never, 0},
		{"slack", 404, `no_team secret-path`, never, 0},
		{"slack", 410, `channel_is_archived`, never, 0},
		{"slack", 500, `rollup_error`, again, 0},
		{"slack", 429, `rate_limited`, again, time.Minute},

		{"json", 200, `{"error":"x"}`, delivered, 0},
		{"json", 429, ``, again, 0},
	} {
		t.Run(fmt.Sprintf("%s %d %.20s", c.service, c.status, c.body), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			err := NewWebhook(format(c.service), text(s.URL+"/hook/secret-path"), text("")).Send(t.Context(), Event{Text: "x"})
			came, wait := again, time.Duration(0)
			if errors.Is(err, ErrRefused) {
				came = never
			} else if err == nil {
				came = delivered
			}
			if later, ok := errors.AsType[*service.Later](err); ok {
				wait = later.Wait
			}
			if came != c.want || wait != c.wait {
				t.Errorf("%s, after %s (%v), want %s after %s", came, wait, err, c.want, c.wait)
			}
			if err != nil && strings.Contains(err.Error(), "secret-path") {
				t.Errorf("the error quotes the address: %v", err)
			}
		})
	}
}

func TestAServiceThatNamesATimeIsLeftAloneForIt(t *testing.T) {
	for header, want := range map[string]time.Duration{"30": 30 * time.Second, "999999": 10 * time.Minute, "0": 0, "soon": 0} {
		for _, name := range []string{"json", "feishu"} {
			err := NewWebhook(format(name), text(answers(t, 429, "Retry-After", header).URL), text("")).Send(t.Context(), Event{})
			later, ok := errors.AsType[*service.Later](err)
			if ok != (want > 0) || ok && later.Wait != want {
				t.Errorf("%s, Retry-After: %s: %#v", name, header, err)
			}
		}
	}
}

func TestTextsThatCallPeopleAreMadeHarmless(t *testing.T) {
	for name, c := range map[string]struct{ said, want string }{
		"slack":  {"<!channel> a&b", "baton: &lt;!channel&gt; a&amp;b"},
		"feishu": {`<at user_id="all">x</at>`, `baton: < at user_id="all">x</at>`},
		"wecom":  {"<@all>", "baton: < @all>"},
	} {
		var got map[string]any
		s := bot(t, name, &got)
		if err := NewWebhook(format(name), text(s.URL+"/?access_token=secret-path"), secretOf(format(name), theSecret)).Send(t.Context(), Event{Text: c.said}); err != nil {
			t.Error(err)
		}
		content, _ := got["content"].(map[string]any)
		if inner, ok := got["text"].(map[string]any); ok {
			content = map[string]any{"text": inner["content"]}
		} else if got["text"] != nil {
			content = got
		}
		if content["text"] != c.want {
			t.Errorf("%s: %q, want %q", name, content["text"], c.want)
		}
	}
}
