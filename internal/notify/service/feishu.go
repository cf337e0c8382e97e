package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// feishu is a custom bot of Feishu or Lark. It accepts 100 messages per minute and 5 per second, each of at most 20 KB.
var feishu = Format{
	Name:   "feishu",
	Secret: Signs,
	Encode: func(m Message, secret string) ([]byte, error) {
		f := feishuMessage{Type: "text"}
		f.Content.Text = said(m, 4<<10, "<at")
		if secret != "" {
			f.Timestamp = strconv.FormatInt(time.Now().Unix(), 10)
			f.Sign = feishuSign(f.Timestamp, secret)
		}
		return json.Marshal(f)
	},
	Judge: coded{
		service: "a Feishu or Lark bot", field: "code",
		refusals: map[int]string{
			9499:  "the request is malformed",
			19001: "the address belongs to no bot",
			19002: "the request is malformed",
			19021: "the signature is wrong: check the secret in token_file, and this host's clock",
			19022: "this host's address is not on the bot's list",
			19024: `the bot's keyword is missing: "baton" is in every message`,
		},
		tooMany: []int{11232},
	}.judge,
	Pace: Pace{100, time.Minute},
}

type feishuMessage struct {
	Timestamp string `json:"timestamp,omitempty"`
	Sign      string `json:"sign,omitempty"`
	Type      string `json:"msg_type"`
	Content   struct {
		Text string `json:"text"`
	} `json:"content"`
}

// feishuSign signs an empty text, with the time in seconds and the secret as the key, because the service requires that.
func feishuSign(timestamp, secret string) string {
	return base64.StdEncoding.EncodeToString(hmac.New(sha256.New, []byte(timestamp+"\n"+secret)).Sum(nil))
}
