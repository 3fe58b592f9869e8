// Package access asks the API server, before anything changes, whether the caller may do all that a changeover needs,
// and names the rules that are missing.
package access

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Rule is one thing that the caller must be allowed to do.
type Rule struct {
	Group     string // "" is the core group
	Resource  string
	Verb      string
	Namespace string // "" means in all namespaces, or a resource without any
	// Names are the only objects that matter; being allowed each of them is as good as being allowed all. Empty means all.
	Names []string
}

// String writes the rule as it would stand in a Role or ClusterRole.
func (r Rule) String() string {
	s := fmt.Sprintf("apiGroups: [%q], resources: [%q], verbs: [%q]", r.Group, r.Resource, r.Verb)
	if r.Namespace != "" {
		s += " in namespace " + r.Namespace
	}
	return s
}

// MissingError names every rule that the caller lacks.
type MissingError struct {
	Rules []Rule
}

func (e *MissingError) Error() string {
	if len(e.Rules) == 1 {
		return "permission missing: " + e.Rules[0].String()
	}
	lines := make([]string, len(e.Rules))
	for i, r := range e.Rules {
		lines[i] = "\n  " + r.String()
	}
	return fmt.Sprintf("%d permissions missing:", len(e.Rules)) + strings.Join(lines, "")
}

// Hints says what to do about it.
func (e *MissingError) Hints() []string {
	return []string{"have somebody bind a role with these rules to you, or use another context; nothing was changed"}
}

// Check asks for each distinct rule and returns a *MissingError when any is denied. The answer is the API server's at this
// moment: a later request may still be refused.
func Check(ctx context.Context, client authorizationclient.AuthorizationV1Interface, rules []Rule) error {
	missing := &MissingError{}
	asked := map[string]bool{}
	for _, rule := range rules {
		if asked[rule.String()] {
			continue
		}
		asked[rule.String()] = true
		allowed, err := allows(ctx, client, rule)
		if err != nil {
			return fmt.Errorf("asking for permissions: %w", err)
		}
		if !allowed {
			missing.Rules = append(missing.Rules, rule)
		}
	}
	if len(missing.Rules) > 0 {
		return missing
	}
	return nil
}

// allows asks for all objects first, since that is one request where the names may be hundreds.
func allows(ctx context.Context, client authorizationclient.AuthorizationV1Interface, rule Rule) (bool, error) {
	allowed, err := review(ctx, client, rule, "")
	if allowed || err != nil || len(rule.Names) == 0 {
		return allowed, err
	}
	for _, name := range rule.Names {
		if allowed, err := review(ctx, client, rule, name); !allowed || err != nil {
			return false, err
		}
	}
	return true, nil
}

func review(ctx context.Context, client authorizationclient.AuthorizationV1Interface, rule Rule, name string) (bool, error) {
	answer, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: rule.Group, Resource: rule.Resource, Verb: rule.Verb, Namespace: rule.Namespace, Name: name,
		}}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
