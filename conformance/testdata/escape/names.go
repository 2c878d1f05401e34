//go:build linux

package main

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names is the world's name server. It writes down every question that reaches it.
type names struct {
	log *logbook

	mu    sync.Mutex
	asked map[string]int // how often each name was asked for its IPv4 address
}

// addressesOf are the addresses of the world's hosts. Of several lists separated by
// "|" the first question gets the first, and so on; the last stays. Names that are
// not here do not exist.
func addressesOf(host string) string {
	return map[string]string{
		"good.example":          "93.184.216.34",
		"other.example":         "93.184.216.35",
		"asked.example":         "93.184.216.36",
		"evil.example":          "93.184.216.66",
		"xn--bcher-kva.example": "93.184.216.37",
		"turns.example":         "93.184.216.34|127.0.0.1",
		"moves.example":         "93.184.216.34|93.184.216.35",
		"mixed.example":         "127.0.0.1 93.184.216.34",
		"rebind.example":        "127.0.0.1 169.254.169.254 203.0.113.5",
		"meta.example":          "169.254.169.254",
		"loop.example":          "127.0.0.1",
		"any.example":           "0.0.0.0",
		"home.example":          "192.168.1.1",
		"mapped.example":        "::ffff:127.0.0.1",
		"nat64.example":         "64:ff9b::7f00:1",
		"6to4.example":          "2002:7f00:1::",
		"six.example":           "::1",
		"made.example":          "198.18.0.1",
	}[host]
}

// aliasesOf are the names for which others stand.
func aliasOf(host string) string {
	return map[string]string{"alias.example": "good.example.", "inward.example": "meta.example.", "circle.example": "circle.example."}[host]
}

func (s *names) serve(at string) error {
	c, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	// Ends with the process.
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if reply := s.reply(at, b[:n]); reply != nil {
				c.WriteTo(reply, from)
			}
		}
	}()
	return nil
}

func (s *names) reply(at string, question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		s.log.line("HIT udp:" + at)
		return nil
	}
	q := m.Questions[0]
	s.log.line("ASKED " + strings.TrimPrefix(q.Type.String(), "Type") + " " + q.Name.String())
	m = dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if m.RCode, m.Answers = s.answer(q); m.RCode != dnsmessage.RCodeSuccess {
		s.log.line("HIT udp:" + at) // nobody has a reason to ask for it
	}
	packet, err := m.Pack()
	if err != nil {
		return nil
	}
	return packet
}

// answer finds the addresses of a name, of the kind that is asked for.
func (s *names) answer(q dnsmessage.Question) (dnsmessage.RCode, []dnsmessage.Resource) {
	host := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
	var answers []dnsmessage.Resource
	if alias := aliasOf(host); alias != "" {
		to := dnsmessage.MustNewName(alias)
		answers = append(answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.CNAMEResource{CNAME: to}})
		head.Name, host = to, strings.TrimSuffix(alias, ".")
	}
	list := addressesOf(host)
	if list == "" {
		return dnsmessage.RCodeNameError, answers
	}
	for text := range strings.FieldsSeq(s.turn(host, list, q.Type)) {
		switch a := netip.MustParseAddr(text); {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			answers = append(answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			answers = append(answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return dnsmessage.RCodeSuccess, answers
}

// turn is the list whose turn it is.
func (s *names) turn(host, list string, kind dnsmessage.Type) string {
	turns := strings.Split(list, "|")
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == dnsmessage.TypeA {
		s.asked[host]++
	}
	return turns[min(max(s.asked[host], 1), len(turns))-1]
}

// exchangeTCP asks a question over a stream, where its length comes first (RFC 1035,
// 4.2.2).
func exchangeTCP(c net.Conn, question []byte) ([]byte, error) {
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}
