package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestABotOfFeishuSaysInTheBodyWhetherItHasTakenTheMessage(t *testing.T) {
	for name, c := range map[string]struct {
		status          int
		body            string
		delivered, ever bool // ever: it is tried again
	}{
		"taken":                       {200, `{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}`, true, false},
		"malformed":                   {200, `{"code":19002,"msg":"params error, msg_type need"}`, false, false},
		"no such bot":                 {200, `{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}`, false, false},
		"a wrong signature":           {200, `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`, false, false},
		"malformed, with a status":    {400, `{"code":9499,"msg":"Bad Request","data":{}}`, false, false},
		"too many messages":           {200, `{"code":11232,"msg":"frequency limited psm"}`, false, true},
		"a code that nobody knows":    {200, `{"code":1,"msg":"?"}`, false, true},
		"a page of a proxy":           {200, `<html>sign in`, false, true},
		"no code":                     {200, `{}`, false, true},
		"cut short":                   {200, `{"code":`, false, true},
		"a gateway without a service": {502, ``, false, true},
		"nothing there":               {404, `not found`, false, false},
		"a code beside a status":      {500, `{"code":0}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, _ = io.ReadAll(r.Body)
				if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "" {
					t.Errorf("%s with %v", r.Method, r.Header)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			err := NewWebhook("feishu", text(s.URL+"/hook/secret-path"), text("")).Send(t.Context(), Event{Text: "Job users failed on db1"})
			if (err == nil) != c.delivered || !c.delivered && errors.Is(err, ErrRefused) == c.ever {
				t.Errorf("%v, want delivered %v, tried again %v", err, c.delivered, c.ever)
			}
			if err != nil && strings.Contains(err.Error(), "secret-path") {
				t.Errorf("the error quotes the address: %v", err)
			}
			if want := `{"msg_type":"text","content":{"text":"baton: Job users failed on db1"}}`; string(got) != want {
				t.Errorf("posted %s, want %s", got, want)
			}
		})
	}
}

func TestABotOfFeishuIsSentASignature(t *testing.T) {
	var got struct{ Timestamp, Sign string }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Header.Get("Authorization") != "" {
			t.Errorf("%v, %v", err, r.Header)
		}
		_, _ = io.WriteString(w, `{"code":0}`)
	}))
	defer s.Close()
	if err := NewWebhook("feishu", text(s.URL), text("the-secret")).Send(t.Context(), Event{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseInt(got.Timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Errorf("signed at %q", got.Timestamp)
	}
	mac := hmac.New(sha256.New, []byte(got.Timestamp+"\nthe-secret"))
	if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.Sign != want {
		t.Errorf("signed %q, want %q", got.Sign, want)
	}
	// As computed once by another program: printf '' | openssl dgst -sha256 -hmac $'1599360473\nthe-secret' -binary | base64
	if got, want := feishuSign("1599360473", "the-secret"), "9pQi/5RbfHSqiL0137DnexToOuoRA2unfVIUvV7OVLI="; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
