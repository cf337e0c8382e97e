package service

import "testing"

func TestSignaturesAreThoseOfOpenSSL(t *testing.T) {
	// printf '' | openssl dgst -sha256 -hmac $'1599360473\nthe-secret' -binary | base64
	if got, want := feishuSign("1599360473", "the-secret"), "9pQi/5RbfHSqiL0137DnexToOuoRA2unfVIUvV7OVLI="; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// printf '1599360473000\nthe-secret' | openssl dgst -sha256 -hmac the-secret -binary | base64
	if got, want := dingtalkSign("1599360473000", "the-secret"), "C3wamse2IP83ZpAjqHpXpTQt0dboxaXCvuHt3ZzolVM="; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFormatIsKnownByItsName(t *testing.T) {
	for _, name := range append(Names(), "") {
		if _, known := Find(name); !known {
			t.Errorf("%q is not known", name)
		}
	}
	if f, known := Find("teams"); known || f.Name != "json" {
		t.Errorf("%q, %v", f.Name, known)
	}
}
