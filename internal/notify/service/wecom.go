package service

import "time"

// wecom is a group bot of WeCom (WeChat Work). It accepts 20 messages per minute, each of at most 2,048 bytes. Its only secret is the key
// in its address.
var wecom = Format{
	Name: "wecom",
	Encode: func(m Message, _ string) ([]byte, error) {
		return encodeChat(said(m, 2000, "<@"))
	},
	Judge: coded{
		service: "a WeCom bot", field: "errcode",
		refusals: map[int]string{
			40008: "the request is malformed",
			40035: "the request is malformed",
			40058: "the request is malformed",
			44004: "the request is malformed",
			45002: "the text is too long",
			93000: "the address belongs to no bot",
			93004: "the bot is disabled",
			93008: "the bot is not in the group",
		},
		tooMany: []int{45009},
	}.judge,
	Pace: Pace{18, time.Minute}, // less than 20, because the service's minute may begin at another time
}
