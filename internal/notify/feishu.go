package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// feishu is a custom bot of Feishu or Lark. The token, if there is one, is the secret that signs
// the request. Each text begins with "baton", which a bot may demand as a keyword.
var feishu = Format{
	Encode: func(e Event, secret string) ([]byte, error) {
		m := feishuMessage{Type: "text"}
		m.Content.Text = "baton: " + e.Text
		if secret != "" {
			m.Timestamp = strconv.FormatInt(time.Now().Unix(), 10)
			m.Sign = feishuSign(m.Timestamp, secret)
		}
		return json.Marshal(m)
	},
	Judge: judgeFeishu,
}

type feishuMessage struct {
	Timestamp string `json:"timestamp,omitempty"`
	Sign      string `json:"sign,omitempty"`
	Type      string `json:"msg_type"`
	Content   struct {
		Text string `json:"text"`
	} `json:"content"`
}

// feishuSign signs nothing, with the time and the secret as the key: so the service wants it.
func feishuSign(timestamp, secret string) string {
	return base64.StdEncoding.EncodeToString(hmac.New(sha256.New, []byte(timestamp+"\n"+secret)).Sum(nil))
}

// feishuRefusals are the codes with which trying again is of no use.
var feishuRefusals = map[int]string{
	9499:  "the request is malformed",
	19001: "the address belongs to no bot",
	19002: "the request is malformed",
	19021: "the signature is wrong: check the secret in token_file, and this host's clock",
	19022: "this host's address is not on the bot's list",
	19024: `the bot's keyword is missing: "baton" is in every message`,
}

// judgeFeishu: a status of 200 says nothing, only a code of 0 in the body is a delivery.
func judgeFeishu(status int, body []byte) error {
	var answer struct {
		Code *int `json:"code"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == nil {
		if err := judge(status); err != nil {
			return err
		}
		return fmt.Errorf("the answer is %d without a code: is this the address of a Feishu or Lark bot?", status)
	}
	why, refused := feishuRefusals[*answer.Code]
	switch {
	case *answer.Code == 0:
		return judge(status)
	case refused:
		return Refused("code %d: %s", *answer.Code, why)
	}
	return fmt.Errorf("the answer has code %d", *answer.Code) // 11232: too many messages
}
