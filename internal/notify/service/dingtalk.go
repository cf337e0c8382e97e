package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"
)

// dingtalk is a custom bot of DingTalk. It accepts 20 messages per minute. If it gets more messages, it accepts none for ten minutes.
var dingtalk = Format{
	Name:   "dingtalk",
	Secret: Signs,
	Encode: func(m Message, _ string) ([]byte, error) { return encodeChat(said(m, 4<<10, "")) },
	Sign: func(query url.Values, secret string) {
		timestamp := strconv.FormatInt(time.Now().UnixMilli(), 10)
		query.Set("timestamp", timestamp)
		query.Set("sign", dingtalkSign(timestamp, secret))
	},
	Judge: coded{
		service: "a DingTalk bot", field: "errcode",
		refusals: map[int]string{
			40035:  "the request is malformed",
			43004:  "the request is malformed",
			300001: "the address belongs to no bot",
			310000: `the bot's security settings refuse the message: check the secret in token_file and this host's clock, ` +
				`the bot's list ` +
				`of addresses, and that a keyword, if it demands one, is "baton"`,
			400013: "the bot's group is dissolved",
			400101: "the address belongs to no bot",
			400102: "the bot is disabled",
			400105: "the bot takes no text messages",
			400106: "the bot does not exist",
			430101: "the bot refuses the text",
			430102: "the bot refuses the text",
			430104: "the bot refuses the text",
		},
		tooMany: []int{130101, 410100},
	}.judge,
	Pace: Pace{18, time.Minute}, // less than 20, because the service's minute may begin at another time
}

// dingtalkSign signs the time in milliseconds and the secret, with the secret as the key.
func dingtalkSign(timestamp, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "\n" + secret))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
