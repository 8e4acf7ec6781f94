import { Button } from "./button";

interface FootProps {
  refusal?: string | null | undefined;
  /** The word on the button. */
  submit: string;
  disabled?: boolean;
  onClose(): void;
}

/** What the server said to a form as a whole, and its two buttons. */
export function FormFoot({ refusal, submit, disabled = false, onClose }: FootProps) {
  return (
    <>
      {refusal && (
        <p role="alert" className="text-xs text-bad">
          {refusal}
        </p>
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" type="submit" disabled={disabled}>
          {submit}
        </Button>
      </div>
    </>
  );
}
