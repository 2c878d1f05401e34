package egress

import (
	"context"
	"errors"
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

func (s *Server) answerQuestions(ctx context.Context, dns net.PacketConn) {
	waiting := make(chan struct{}, maxQuestions)
	buf := make([]byte, 4<<10)
	defer func() {
		for range cap(waiting) {
			waiting <- struct{}{}
		}
	}()
	for {
		n, from, err := dns.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil {
			continue // only this packet failed
		}
		q, head, ok := parseQuestion(buf[:n])
		if !ok {
			continue
		}
		select {
		case waiting <- struct{}{}:
		default:
			continue
		}
		// Ends with the decision or ctx.
		go func() {
			defer func() { <-waiting }()
			if reply := s.reply(ctx, head, q); reply != nil {
				_, _ = dns.WriteTo(reply, from)
			}
		}()
	}
}

func parseQuestion(packet []byte) (q dnsmessage.Question, head dnsmessage.Header, ok bool) {
	var p dnsmessage.Parser
	head, err := p.Start(packet)
	if err != nil || head.Response || head.OpCode != 0 {
		return q, head, false
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || questions[0].Class != dnsmessage.ClassINET {
		return q, head, false
	}
	return questions[0], head, true
}

// reply answers a query with IPv4 addresses only, without recursion.
func (s *Server) reply(ctx context.Context, head dnsmessage.Header, q dnsmessage.Question) []byte {
	answer := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: head.ID, Response: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	n, err := s.resolve(ctx, q)
	var missing *lookupError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &missing):
		answer.RCode = dnsmessage.RCodeNameError
	case err != nil:
		answer.RCode = dnsmessage.RCodeRefused
	case q.Type == dnsmessage.TypeA:
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: n.address.As4()},
		}}
	}
	packet, err := answer.Pack()
	if err != nil {
		return nil
	}
	return packet
}

// resolve returns the record of the name in a DNS query, if the call may look it up.
func (s *Server) resolve(ctx context.Context, q dnsmessage.Question) (*nameRecord, error) {
	text := strings.TrimSuffix(q.Name.String(), ".")
	host, err := ParseName(text)
	if err != nil {
		return nil, err
	}
	n, err := s.recordOf(host)
	if err != nil {
		return nil, s.refuse(host, 0, err)
	}
	_, err = s.addresses(ctx, n, 0)
	return n, err
}
