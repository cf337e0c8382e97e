// Package service describes the services that a webhook can use: the request that each service expects, its signature, the meaning of its
// answer, and the number of messages that it accepts. Each service is one file and one line of [formats].
package service

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"baton/internal/text"
)

// formats contains all formats of a webhook's request. The first is the default.
var formats = []Format{plain, slack, feishu, dingtalk, wecom}

// Format describes the requests that a service accepts, and the answers that it sends.
type Format struct {
	// Name is the name of the format in the configuration.
	Name string
	// Secret says how the text of token_file is used.
	Secret Use
	// Encode returns the body of a message. secret is empty unless Secret is [Signs].
	Encode func(m Message, secret string) ([]byte, error)
	// Sign adds the signature of a message to the query of the address. It is nil if there is no signature.
	Sign func(query url.Values, secret string)
	// Judge returns the result of a delivery, from the answer. Its error must not contain text of the body, because the body may quote the
	// address of the webhook, which can be a secret.
	Judge func(a Answer) error
	// Pace is the service's limit for one sender.
	Pace Pace
}

// Use says how a service uses the text of token_file.
type Use int

// These are the values of Use.
const (
	Nothing Use = iota // there is no token_file, because the address is the secret
	Bearer             // the text is sent as Authorization: Bearer
	Signs              // the text signs the message, and is not sent
)

// Message is an event, in two forms that can be posted.
type Message struct {
	JSON []byte // the event as JSON
	Text string // the event as one sentence
}

// Answer is the HTTP answer of a service.
type Answer struct {
	Status     int
	RetryAfter string // the header Retry-After
	Body       []byte
}

// Pace is the number of messages that a service accepts within a time. The zero Pace means that there is no limit.
type Pace struct {
	Most   int
	Within time.Duration
}

// plain is the format of a webhook that gets the event itself as JSON.
var plain = Format{
	Name:   "json",
	Secret: Bearer,
	Encode: func(m Message, _ string) ([]byte, error) { return m.JSON, nil },
	Judge:  judge,
}

// Find returns the format with the given name. The name "" means the default.
func Find(name string) (f Format, known bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return formats[0], name == ""
}

// Names returns the names of the formats, with the default first.
func Names() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return names
}

// said returns the text of a message, cut to the number of bytes in the argument most. The argument calls is a mark in a text that makes
// the service alert people, so said inserts a space into each such mark. The result contains the word "baton", because a bot may require it
// as a keyword.
func said(m Message, most int, calls string) string {
	harmless := m.Text
	if calls != "" {
		harmless = strings.ReplaceAll(m.Text, calls, calls[:1]+" "+calls[1:])
	}
	return text.Clip("baton: "+harmless, most)
}

// chat is the text message of DingTalk and WeCom.
type chat struct {
	Type string `json:"msgtype"`
	Text struct {
		Content string `json:"content"`
	} `json:"text"`
}

func encodeChat(content string) ([]byte, error) {
	m := chat{Type: "text"}
	m.Text.Content = content
	return json.Marshal(m)
}

// retryAfter parses the header Retry-After. It accepts only a number of seconds, because these services send no other form. Otherwise it
// returns 0.
func retryAfter(header string) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(header))
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, longestWait)
}
