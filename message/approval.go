package message

// approvalResponse decodes the answers of an approver. Each item stands alone:
// a faulty one is refused and the others count. Whatever is unclear approves
// nothing.
func (x *decoding) approvalResponse() {
	var w wireApproval
	if faults := bind(x.frame, &w); x.refuse(faults, "", "") {
		return
	}
	switch w.Remember {
	case "", "once", "session", "rule":
	default:
		x.errorf(InvalidArguments, "remember must be once, session or rule")
		return
	}
	response := &ApprovalResponse{Remember: w.Remember}
	switch {
	case len(w.Approvals) > 0:
		response.Answers = x.answers(w.Approvals)
	case w.Approve != nil && w.ApprovalRequestID != "":
		response.Answers = []ApprovalAnswer{{ApprovalID: string(w.ApprovalRequestID), Approve: *w.Approve, Reason: w.Reason}}
	default:
		x.errorf(InvalidArguments, "the response decides nothing; send approvals with tool_call_id and approve")
	}
	if len(response.Answers) > 0 {
		x.emit(response)
	}
}

func (x *decoding) answers(items []wireAnswer) []ApprovalAnswer {
	var answers []ApprovalAnswer
	for i, item := range items {
		if x.refuse(item.faults, "", item.CallID) {
			continue
		}
		if text := item.problem(items[:i]); text != "" {
			x.errorf(InvalidArguments, "%s", text).CallID = string(item.CallID)
			answers = without(answers, item)
			continue
		}
		answers = append(answers, ApprovalAnswer{CallID: string(item.CallID), Approve: *item.Approve, Reason: item.Reason})
	}
	return answers
}

func (a *wireAnswer) problem(earlier []wireAnswer) string {
	switch {
	case a.Type == "tool":
		return "an approval may not bring a result: toold runs the call itself; send type approval with approve"
	case a.Type != "" && a.Type != "approval":
		return "an item of approvals must have the type approval"
	case a.CallID == "":
		return "an item of approvals names no tool_call_id"
	case a.Approve == nil:
		return "an item of approvals has no approve; send true or false"
	}
	for _, e := range earlier {
		if e.CallID == a.CallID {
			return "the response decides this call twice; decide it once"
		}
	}
	return ""
}

// without drops what an earlier item said of the same call: who contradicts
// himself has decided nothing.
func without(answers []ApprovalAnswer, item wireAnswer) []ApprovalAnswer {
	var kept []ApprovalAnswer
	for _, a := range answers {
		if item.CallID == "" || a.CallID != string(item.CallID) {
			kept = append(kept, a)
		}
	}
	return kept
}
