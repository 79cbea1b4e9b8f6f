//! Profiles of a session: the choice of a profile, the check of envelopes, and the way down. Sends nothing.
//!
//! The rule of 5.7 holds, in place of that of 5.6: the highest profile of both masks, when no minimum is above the choice.

use crate::error::AxcpError;
use crate::message::{ProfileAck, ProfileDowngrade, ProfileNegotiate};

/// Highest profile of the specification.
pub const HIGHEST_PROFILE: u32 = 3;

/// Profiles that a node speaks, and the lowest that the node accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileOffer {
    mask: u32,
    least: u32,
}

impl ProfileOffer {
    /// Reads an offer; bits of the mask without a profile are ignored.
    ///
    /// # Errors
    /// When the minimum is no profile, or is not in the mask.
    pub fn read(negotiate: ProfileNegotiate) -> Result<Self, AxcpError> {
        let ProfileNegotiate { supported_mask, min_required: least } = negotiate;
        let offer = Self { mask: supported_mask & 0b1111, least };
        if offer.has(least) { Ok(offer) } else { Err(AxcpError::Malformed("the minimum is no profile of the mask")) }
    }

    /// Makes the offer of a node that shares contexts, and has no enclave for profile 3.
    pub const fn of_sync() -> Self {
        Self { mask: 0b0111, least: 2 }
    }

    /// Writes the offer as a message.
    pub fn write(self) -> ProfileNegotiate {
        ProfileNegotiate { supported_mask: self.mask, min_required: self.least }
    }

    fn has(self, profile: u32) -> bool {
        profile <= HIGHEST_PROFILE && self.mask & (1 << profile) != 0
    }

    /// Chooses the profile of a session, alike on both sides.
    ///
    /// # Errors
    /// When the masks share no profile as high as both minimums.
    pub fn agree(self, other: Self) -> Result<u32, AxcpError> {
        let shared = (0..=HIGHEST_PROFILE).rev().find(|profile| self.has(*profile) && other.has(*profile));
        match shared {
            Some(profile) if profile >= self.least.max(other.least) => Ok(profile),
            Some(_) | None if !self.has(other.least) || !other.has(self.least) => Err(AxcpError::ProfileUnsupported),
            Some(_) | None => Err(AxcpError::Negotiation),
        }
    }
}

/// Profile of a session, once both sides have made their offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSession {
    ours: ProfileOffer,
    theirs: ProfileOffer,
    /// Highest profile that the peer may send.
    inward: u32,
    /// Highest profile that the node itself may send.
    outward: u32,
    /// Profile of a wish without an answer.
    asked: Option<u32>,
}

impl ProfileSession {
    /// Begins a session.
    ///
    /// # Errors
    /// When the offers have no profile in common.
    pub fn new(ours: ProfileOffer, theirs: ProfileOffer) -> Result<Self, AxcpError> {
        let profile = ours.agree(theirs)?;
        Ok(Self { ours, theirs, inward: profile, outward: profile, asked: None })
    }

    /// Gives the highest profile of an envelope to be sent, which is the profile of the session.
    pub fn profile(&self) -> u32 {
        self.outward
    }

    /// Writes the acknowledgement of the session's profile.
    pub fn ack(&self) -> ProfileAck {
        ProfileAck { agreed_profile: self.outward }
    }

    /// Checks the acknowledgement of the peer, or lowers the profile when the acknowledgement answers a wish.
    ///
    /// # Errors
    /// When the peer acknowledges another profile: the two sides do not speak of the same session.
    pub fn acknowledged(&mut self, ack: ProfileAck) -> Result<(), AxcpError> {
        if ack.agreed_profile != self.asked.unwrap_or(self.inward) {
            return Err(AxcpError::Negotiation);
        }
        if let Some(asked) = self.asked.take() {
            self.inward = self.inward.min(asked);
        }
        Ok(())
    }

    /// Checks the profile of a received envelope.
    ///
    /// # Errors
    /// When the profile is above that of the session, or not in the mask of this node.
    pub fn admit(&self, profile: u32) -> Result<(), AxcpError> {
        if profile > self.inward {
            return Err(AxcpError::ProfileMismatch { most: self.inward });
        }
        if self.ours.has(profile) { Ok(()) } else { Err(AxcpError::ProfileUnsupported) }
    }

    /// Asks for a lower profile. The node sends no higher profile from now on; envelopes on their way are admitted until the answer.
    ///
    /// # Errors
    /// When the profile is not lower, or below a minimum, or not in both masks, or an earlier wish has no answer yet.
    pub fn lower(&mut self, to: u32, reason: &str) -> Result<ProfileDowngrade, AxcpError> {
        if self.asked.is_some() {
            return Err(AxcpError::Malformed("an earlier downgrade has no answer yet"));
        }
        self.check_lower(to, self.outward)?;
        self.asked = Some(to);
        self.outward = to;
        Ok(ProfileDowngrade { new_profile: to, reason: reason.to_owned() })
    }

    /// Answers a peer's wish for a lower profile. The peer has sent no higher profile since the wish.
    ///
    /// # Errors
    /// When the profile is not lower, or below a minimum, or not in both masks.
    pub fn lowered(&mut self, wish: &ProfileDowngrade) -> Result<ProfileAck, AxcpError> {
        self.check_lower(wish.new_profile, self.inward)?;
        self.inward = wish.new_profile;
        self.outward = self.outward.min(wish.new_profile);
        Ok(ProfileAck { agreed_profile: wish.new_profile })
    }

    fn check_lower(&self, to: u32, now: u32) -> Result<(), AxcpError> {
        let is_shared = self.ours.has(to) && self.theirs.has(to);
        if is_shared && to < now && to >= self.ours.least.max(self.theirs.least) { Ok(()) } else { Err(AxcpError::Downgrade) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer(mask: u32, least: u32) -> Result<ProfileOffer, AxcpError> {
        ProfileOffer::read(ProfileNegotiate { supported_mask: mask, min_required: least })
    }

    fn session(ours: (u32, u32), theirs: (u32, u32)) -> Result<ProfileSession, AxcpError> {
        ProfileSession::new(offer(ours.0, ours.1)?, offer(theirs.0, theirs.1)?)
    }

    /// The picture of 5.7 says 2, which is not in the second mask (decision 2).
    #[test]
    fn xc_03_the_corrected_example_agrees_on_profile_one() {
        assert_eq!(session((0b0111, 1), (0b1011, 0)).unwrap().profile(), 1);
        assert_eq!(session((0b1011, 0), (0b0111, 1)).unwrap().ack(), ProfileAck { agreed_profile: 1 });
    }

    #[test]
    fn xc_03_the_vectors_of_the_reference_hold() {
        assert_eq!(session((0b1111, 1), (0b1011, 0)).unwrap().profile(), 3);
        assert!(session((0b0001, 0), (0b0100, 0)).is_err());
        assert!(session((0b0011, 2), (0b0110, 1)).is_err());
        assert_eq!(session((0b0001, 0), (0b0100, 2)), Err(AxcpError::ProfileUnsupported));
        assert_eq!(session((0b1011, 1), (0b0011, 0)).unwrap().profile(), 1);
        assert_eq!(session((0b1111, 2), (0b0011, 0)), Err(AxcpError::ProfileUnsupported));
    }

    #[test]
    fn xc_03_an_offer_without_sense_is_malformed() {
        assert_eq!(offer(0b11_1001, 3).unwrap().write(), ProfileNegotiate { supported_mask: 0b1001, min_required: 3 });
        for (mask, least) in [(0, 0), (0b1111, 4), (0b1011, 2), (0b1_0000, 4), (u32::MAX, u32::MAX)] {
            assert!(matches!(offer(mask, least), Err(AxcpError::Malformed(_))), "{mask:b} {least}");
        }
    }

    #[test]
    fn xc_02_a_node_of_contexts_demands_profile_two() {
        let ours = ProfileOffer::of_sync();
        assert_eq!(ProfileOffer::read(ours.write()), Ok(ours));
        assert_eq!(ours.agree(offer(0b1111, 0).unwrap()), Ok(2));
        assert!(ours.agree(offer(0b0011, 0).unwrap()).is_err() && ours.agree(offer(0b1111, 3).unwrap()).is_err());
    }

    #[test]
    fn xc_03_another_acknowledgement_ends_the_session() {
        let mut session = session((0b0111, 1), (0b1011, 0)).unwrap();
        assert_eq!(session.acknowledged(ProfileAck { agreed_profile: 2 }), Err(AxcpError::Negotiation));
        assert_eq!(session.acknowledged(ProfileAck { agreed_profile: 1 }), Ok(()));
    }

    #[test]
    fn xc_03_an_envelope_above_the_session_is_a_mismatch() {
        let session = session((0b0111, 0), (0b0111, 0)).unwrap();
        assert_eq!(session.admit(2), Ok(()));
        assert_eq!(session.admit(3).unwrap_err().code().number(), 12);
    }

    #[test]
    fn xc_02_a_profile_outside_the_mask_is_refused() {
        let session = session((0b1011, 0), (0b1111, 0)).unwrap();
        assert_eq!(session.admit(3), Ok(()));
        assert_eq!(session.admit(2).unwrap_err().code().number(), 13);
    }

    #[test]
    fn xc_03_a_downgrade_is_never_below_a_minimum() {
        let mut session = session((0b1011, 0), (0b1111, 1)).unwrap();
        for refused in [0, 2, 3, 4, u32::MAX] {
            assert_eq!(session.lower(refused, ""), Err(AxcpError::Downgrade), "{refused}");
            let wish = ProfileDowngrade { new_profile: refused, reason: String::new() };
            assert_eq!(session.lowered(&wish), Err(AxcpError::Downgrade), "{refused}");
        }
        assert!(session.lower(1, "battery").is_ok());
        assert!(session.lower(1, "again").is_err());
    }

    #[test]
    fn xc_03_envelopes_on_their_way_pass_until_the_answer() {
        let mut ours = session((0b1111, 0), (0b1111, 0)).unwrap();
        let mut theirs = ours.clone();
        let wish = ours.lower(1, "battery").unwrap();
        assert_eq!((ours.profile(), ours.admit(3)), (1, Ok(())));
        let ack = theirs.lowered(&wish).unwrap();
        assert_eq!((theirs.profile(), theirs.admit(2).is_err()), (1, true));
        ours.acknowledged(ack).unwrap();
        assert_eq!(ours.admit(2), Err(AxcpError::ProfileMismatch { most: 1 }));
    }

    #[test]
    fn xc_03_wishes_that_cross_end_at_the_lower() {
        let mut ours = session((0b1111, 0), (0b1111, 0)).unwrap();
        let mut theirs = ours.clone();
        let (one, two) = (ours.lower(1, "").unwrap(), theirs.lower(2, "").unwrap());
        let (to_us, to_them) = (theirs.lowered(&one).unwrap(), ours.lowered(&two).unwrap());
        ours.acknowledged(to_us).unwrap();
        theirs.acknowledged(to_them).unwrap();
        for side in [&ours, &theirs] {
            assert_eq!((side.profile(), side.admit(2).is_err(), side.admit(1)), (1, true, Ok(())));
        }
    }

    proptest! {
        #[test]
        fn xc_03_both_sides_choose_the_same(a in (1_u32..16, 0_u32..4), b in (1_u32..16, 0_u32..4)) {
            let (one, other) = (session(a, b), session(b, a));
            prop_assert_eq!(one.is_ok(), other.is_ok());
            if let (Ok(one), Ok(other)) = (one, other) {
                let profile = one.profile();
                prop_assert_eq!(profile, other.profile());
                prop_assert!(a.0 & b.0 & (1 << profile) != 0 && profile >= a.1.max(b.1));
                prop_assert!((a.0 & b.0) >> (profile + 1) == 0);
            }
        }
    }
}
